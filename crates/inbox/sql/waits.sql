-- Locked in one order, so that two batches never wait in a circle.
select w.topic, w.aggregate_id, w.partition, w.record_offset, w.outbox_id
  from dead_letter_waits w
 where w.consumer = $1
   and (w.topic, w.aggregate_id) in (select * from unnest($2::text[], $3::text[]))
 order by w.topic, w.aggregate_id, w.partition, w.record_offset
   for update
