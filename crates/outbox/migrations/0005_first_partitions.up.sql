-- A new outbox has the partitions of today and of as many days ahead as the publisher's upkeep makes (two), so that no
-- row of its first hours has to be moved out of the default partition. One that has rows is left to the upkeep, which
-- blocks nobody for long.
do $$
declare
    day date := (now() at time zone 'UTC')::date;
begin
    if exists (select from outbox) then
        return;
    end if;
    for ahead in 0..2 loop
        execute format(
            'create table if not exists %I partition of outbox for values from (%L) to (%L)',
            'outbox_' || to_char(day + ahead, 'YYYYMMDD'),
            (day + ahead)::text || ' 00:00:00+00',
            (day + ahead + 1)::text || ' 00:00:00+00'
        );
    end loop;
end
$$;
