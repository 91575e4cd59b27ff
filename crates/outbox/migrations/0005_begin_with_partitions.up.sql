-- A new outbox has partitions for today and tomorrow at once, so that its first rows need not be moved out of the default
-- partition. Those after them are the publisher's (docs/decisions/0010).
do $$
declare
    today date := (now() at time zone 'UTC')::date;
begin
    if exists (select from outbox) then
        return;
    end if;
    for ahead in 0..1 loop
        execute format('create table if not exists outbox_%s partition of outbox for values from (%L) to (%L)',
                       to_char(today + ahead, 'YYYYMMDD'),
                       (today + ahead)::timestamp at time zone 'UTC',
                       (today + ahead + 1)::timestamp at time zone 'UTC');
    end loop;
end
$$;
