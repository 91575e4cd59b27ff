-- $1: acknowledged ids, $2 and $3: the first and last created_at among them, so that only their partitions are
-- visited. clock_timestamp(), since now() is this transaction's begin and may precede created_at.
update outbox
   set published_at = clock_timestamp(), held = false
 where id = any ($1::bigint[])
   and created_at between $2 and $3
   and published_at is null
