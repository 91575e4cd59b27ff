insert into dead_letter_waits (consumer, topic, aggregate_id, partition, record_offset, outbox_id)
select $1, w.topic, w.aggregate_id, w.partition, w.record_offset, nullif(w.outbox_id, 0)
  from unnest($2::text[], $3::text[], $4::integer[], $5::bigint[], $6::bigint[])
       as w(topic, aggregate_id, partition, record_offset, outbox_id)
 order by w.topic, w.aggregate_id, w.partition, w.record_offset
    on conflict do nothing
