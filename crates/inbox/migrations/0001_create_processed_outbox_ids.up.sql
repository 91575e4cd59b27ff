-- What a consumer has applied. The outbox id alone is not enough: ids of two outboxes collide, a restored
-- database hands old ids to new events, and two consumers may live in one database.
create table processed_outbox_ids (
    outbox_id    bigint      not null,
    source       text        not null,
    event_id     uuid        not null,
    consumer     text        not null,
    processed_at timestamptz not null default now(),
    constraint processed_outbox_ids_pkey primary key (outbox_id, source, event_id, consumer)
);
