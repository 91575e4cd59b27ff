delete from dead_letter_waits w
 using unnest($2::text[], $3::text[], $4::integer[], $5::bigint[])
       as e(topic, aggregate_id, partition, record_offset)
 where w.consumer = $1 and w.topic = e.topic and w.aggregate_id = e.aggregate_id
   and w.partition = e.partition and w.record_offset = e.record_offset
