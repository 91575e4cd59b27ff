-- Marking a row writes a second entry for it into its partition's primary key. With pages half full the entry has its
-- place beside the first; with full ones each page is searched for entries to remove and then split, and is half full in
-- the end all the same. Measured: a tenth of what Postgres spends on a drain. A partitioned index itself takes no
-- setting, so the upkeep does the same for each partition that it makes.
do $$
declare
    key regclass;
begin
    for key in
        select c.conindid
          from pg_constraint c
          join pg_inherits i on i.inhrelid = c.conrelid
         where i.inhparent = 'outbox'::regclass and c.contype = 'p'
    loop
        execute format('alter index %s set (fillfactor = 48)', key);
    end loop;
end
$$;
