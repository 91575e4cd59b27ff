-- $1: aggregates that need not wait any more. The caller holds their shards.
with gone as (
    delete from outbox_blocked where aggregate_id = any ($1::text[]) returning aggregate_id, shard),
risen as (
    update outbox_shard s set epoch = s.epoch + 1 where s.shard in (select shard from gone))
update outbox o
   set held = false
  from gone
 where o.aggregate_id = gone.aggregate_id
   and o.held
