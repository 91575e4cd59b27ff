-- One row for each position of the arrays, ids drawn in that order.
insert into outbox (aggregate_id, topic, event_type, payload, headers, event_id)
select e.aggregate_id, e.topic, e.event_type, e.payload::jsonb, e.headers::jsonb, e.event_id
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::uuid[]) with ordinality
       as e(aggregate_id, topic, event_type, payload, headers, event_id, position)
 order by e.position
returning id
