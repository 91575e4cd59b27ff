-- $1: ids of rows behind a row that cannot be sent, $2 and $3: the first and last created_at among them.
update outbox
   set held = true
 where id = any ($1::bigint[])
   and created_at between $2 and $3
   and published_at is null and discarded_at is null
