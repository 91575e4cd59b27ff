-- $1, $2: a row that can never be sent as things are, $3: why, $4: whether its aggregate waits behind it.
with head as (
    update outbox
       set held = false, parked_at = clock_timestamp(), attempts = least(attempts + 1, 32767)::smallint,
           last_error = $3
     where id = $1 and created_at = $2
       and published_at is null and parked_at is null and discarded_at is null
    returning id, created_at, aggregate_id, topic)
insert into outbox_blocked (aggregate_id, outbox_id, created_at, topic, reason, retry_at)
select aggregate_id, id, created_at, topic, $3, null from head where $4::boolean
    on conflict (aggregate_id) do update
   set outbox_id = excluded.outbox_id, created_at = excluded.created_at, topic = excluded.topic,
       reason = excluded.reason, attempts = outbox_blocked.attempts + 1, retry_at = null
