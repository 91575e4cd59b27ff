-- Pruning looks for a consumer's oldest. An older version of the service knows nothing of it, and works as before.
create index processed_outbox_ids_processed_at on processed_outbox_ids (consumer, processed_at);
