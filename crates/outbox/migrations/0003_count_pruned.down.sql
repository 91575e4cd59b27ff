drop table outbox_prunes;
