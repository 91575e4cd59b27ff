-- $1: by shard, ids up to which nothing is to be sent, $2: by shard, the epoch in which that was true.
-- Which shards have something to send. Takes no lock and writes nothing: this is all that an idle poll costs.
-- Not EXISTS: the planner makes a join of it that walks every pending row. The limit keeps it one descent a shard.
select s.shard
  from outbox_shard s
 cross join lateral (
       select o.id
         from outbox o
        where o.shard between s.shard and s.shard
          and (o.shard, o.id) > (s.shard, ($1::bigint[])[s.shard + 1])
          and o.published_at is null and o.parked_at is null and o.discarded_at is null and not o.held
        order by o.shard, o.id
        limit 1) first
 where (select paused_at is null from outbox_control)
union
select s.shard
  from outbox_shard s
 where s.epoch <> ($2::bigint[])[s.shard + 1]
   and (select paused_at is null from outbox_control)
union
select b.shard
  from outbox_blocked b
 where b.retry_at <= clock_timestamp()
   and (select paused_at is null from outbox_control)
