-- $1: locked shards. The aggregates of theirs that wait, and which of them may be tried again now.
select aggregate_id, outbox_id, attempts, (extract(epoch from clock_timestamp() - since) * 1000)::bigint,
       coalesce(retry_at <= clock_timestamp(), false)
  from outbox_blocked
 where shard = any ($1::smallint[])
