-- One row for each position of the arrays, ids drawn in that order.
insert into outbox (aggregate_id, topic, event_type, payload, headers)
select e.aggregate_id, e.topic, e.event_type, e.payload::jsonb, e.headers::jsonb
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) with ordinality
       as e(aggregate_id, topic, event_type, payload, headers, position)
 order by e.position
returning id
