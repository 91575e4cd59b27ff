-- By place in the table: what is locked here is neither deleted nor moved by anybody else.
delete from processed_outbox_ids
 where ctid = any (array(
           select o.ctid
             from processed_outbox_ids o
            where o.consumer = $1 and o.processed_at < now() - $2 * interval '1 millisecond'
            order by o.processed_at
            limit $3
              for update skip locked))
