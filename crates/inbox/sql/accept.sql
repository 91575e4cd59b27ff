-- $1 to $3 are sorted, and inserted in that order.
insert into processed_outbox_ids (outbox_id, source, event_id, consumer)
select e.outbox_id, e.source, e.event_id, $4::text
  from unnest($1::bigint[], $2::text[], $3::uuid[]) with ordinality as e(outbox_id, source, event_id, position)
 order by e.position
    on conflict do nothing
returning outbox_id, source, event_id
