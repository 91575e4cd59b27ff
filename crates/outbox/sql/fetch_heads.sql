-- $1: aggregates that may be tried again. The rows that block them; as fetch_pending.sql.
select o.id, o.created_at, o.aggregate_id, o.topic, o.payload::text as payload, o.event_id,
       coalesce(o.event_type, o.payload ->> 'type', 'unknown') as event_type, o.source,
       nullif(o.headers, '{}')::text as headers, o.shard
  from outbox_blocked b
  join outbox o on o.id = b.outbox_id and o.created_at = b.created_at
 where b.aggregate_id = any ($1::text[])
   and o.published_at is null and o.parked_at is null and o.discarded_at is null
