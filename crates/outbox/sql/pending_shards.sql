-- Which shards have something to send. Takes no lock and writes nothing: this is all that an idle poll costs.
select s.shard
  from outbox_shard s
 where exists (
       select from outbox o
        where o.shard between s.shard and s.shard
          and o.published_at is null and o.parked_at is null and o.discarded_at is null)
