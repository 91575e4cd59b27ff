alter table outbox
    drop constraint outbox_payload_size,
    add constraint outbox_payload_size check (pg_column_size(payload) <= 524288) not valid;
