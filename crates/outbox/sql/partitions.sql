-- Partitions by day.
select c.relname
  from pg_inherits i
  join pg_class c on c.oid = i.inhrelid
 where i.inhparent = 'outbox'::regclass and c.relname ~ '^outbox_[0-9]{8}$'
 order by c.relname
