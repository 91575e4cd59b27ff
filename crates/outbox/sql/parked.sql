-- $1: one row's id, or null for all; $2: at most how many.
-- Rows that cannot be sent, oldest first, with how many wait behind each.
select o.id, o.aggregate_id, o.topic, coalesce(o.event_type, o.payload ->> 'type', 'unknown'),
       o.parked_at is not null, coalesce(b.reason, o.last_error, ''), o.attempts::integer,
       (extract(epoch from clock_timestamp() - coalesce(b.since, o.parked_at)) * 1000)::bigint,
       (select count(*) from outbox w
         where b.aggregate_id is not null and w.aggregate_id = o.aggregate_id and w.held and w.id <> o.id),
       o.created_at, b.aggregate_id is not null
  from (select id, created_at from outbox where parked_at is not null
        union
        select outbox_id, created_at from outbox_blocked) as head
  join outbox o on o.id = head.id and o.created_at = head.created_at
  left join outbox_blocked b on b.outbox_id = o.id and b.created_at = o.created_at
 where $1::bigint is null or o.id = $1
 order by o.id
 limit $2
