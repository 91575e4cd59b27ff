select count(*),
       count(*) filter (where published_at is null and parked_at is null and discarded_at is null),
       count(published_at),
       count(parked_at),
       count(discarded_at)
  from outbox
