-- How many rows wait, counted up to a limit; how old the oldest is, in seconds; how many are parked; how many bytes of
-- log a replication slot of this database keeps. One descent a shard and what waits: not the published rows.
select (select count(*) from (
            select from outbox
             where published_at is null and parked_at is null and discarded_at is null and not held
             limit 100000) ready)
     + (select count(*) from (select from outbox where held limit 100000) waiting),
       coalesce(extract(epoch from clock_timestamp() - least(
           (select min(first.created_at)
              from outbox_shard s
             cross join lateral (
                   select o.created_at
                     from outbox o
                    where o.shard between s.shard and s.shard
                      and o.published_at is null and o.parked_at is null and o.discarded_at is null and not o.held
                    order by o.shard, o.id
                    limit 1) first),
           (select min(b.created_at) from outbox_blocked b where b.retry_at is not null))), 0)::float8,
       (select count(*) from outbox where parked_at is not null),
       coalesce((select max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn))
                   from pg_replication_slots where database = current_database()), 0)::float8
