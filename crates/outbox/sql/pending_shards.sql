-- Which shards have something to send. Takes no lock and writes nothing: this is all that an idle poll costs.
-- Not EXISTS: the planner makes a join of it that walks every pending row. The limit keeps it one descent a shard.
select s.shard
  from outbox_shard s
 cross join lateral (
       select o.id
         from outbox o
        where o.shard between s.shard and s.shard
          and o.published_at is null and o.parked_at is null and o.discarded_at is null
        order by o.shard, o.id
        limit 1) first
