select count(*),
       count(*) filter (where published_at is null and parked_at is null and discarded_at is null),
       count(published_at),
       count(parked_at),
       count(discarded_at),
       (extract(epoch from clock_timestamp() - min(created_at)
           filter (where published_at is null and parked_at is null and discarded_at is null)) * 1000)::bigint
  from outbox
