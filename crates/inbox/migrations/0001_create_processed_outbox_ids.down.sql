drop table processed_outbox_ids;
