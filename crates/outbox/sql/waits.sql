-- Whether any aggregate waits for another try of its row.
select exists (select from outbox_blocked where retry_at is not null)
