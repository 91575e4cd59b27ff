-- $1: locked shards, $2: at most how many of each, $3: at most how many in all, $4: by shard, ids up to which nothing
-- is to be sent. Compared as a pair, which only the index on (shard, id) answers.
-- BETWEEN and not "=": with "=" the order by id is answered by the primary key, past other shards' rows.
select x.*
  from unnest($1::smallint[], $4::bigint[]) as s(shard, low)
 cross join lateral (
       select o.id, o.created_at, o.aggregate_id, o.topic, o.payload::text as payload, o.event_id,
              coalesce(o.event_type, o.payload ->> 'type', 'unknown') as event_type, o.source,
              nullif(o.headers, '{}')::text as headers, o.shard
         from outbox o
        where o.shard between s.shard and s.shard
          and (o.shard, o.id) > (s.shard, s.low)
          and o.published_at is null and o.parked_at is null and o.discarded_at is null and not o.held
        order by o.shard, o.id
        limit $2::bigint) x
 limit $3::bigint
