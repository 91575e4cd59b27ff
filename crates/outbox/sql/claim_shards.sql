-- $1: candidates, $2: where to start this turn, $3: at most how many.
select shard, epoch
  from outbox_shard
 where shard = any ($1::smallint[])
   and (select paused_at is null from outbox_control)
 order by (shard - $2::smallint + 64) % 64
   for update skip locked
 limit $3::bigint
