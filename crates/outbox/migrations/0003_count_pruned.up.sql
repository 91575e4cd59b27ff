-- Partitions that are gone, and how many rows each took along, so that rows can still be accounted for.
create table outbox_prunes (
    id        bigint      not null generated always as identity,
    at        timestamptz not null default clock_timestamp(),
    partition text        not null,
    rows      bigint      not null,
    constraint outbox_prunes_pkey primary key (id)
);
