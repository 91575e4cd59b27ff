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
        execute format('alter index %s reset (fillfactor)', key);
    end loop;
end
$$;
