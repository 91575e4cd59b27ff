-- The outbox: one row for each event, written in the transaction that makes it true.
-- The first six columns are the contract with any writer in any language; all others have defaults, so
-- INSERT INTO outbox (aggregate_id, topic, payload) is enough to be published.
create table outbox (
    id            bigserial   not null,
    aggregate_id  text        not null,
    topic         text        not null,
    payload       jsonb       not null,
    created_at    timestamptz not null default now(),
    published_at  timestamptz null,

    -- Tells two lives of one id apart: a database restored from a backup hands out old ids again.
    event_id      uuid        not null default gen_random_uuid(),
    -- Null means: the payload's "type", else "unknown". A default cannot look at another column.
    event_type    text        null,
    -- Which outbox this is, for consumers that read several; set once by outbox_set_source().
    source        text        not null default 'unnamed',
    -- Further record headers: {"traceparent": "00-..."}.
    headers       jsonb       not null default '{}',
    -- What a publisher locks. 64 is frozen: a change would put one aggregate in two shards at once.
    shard         smallint    not null
        generated always as ((hashtextextended(aggregate_id, 0) & 63)::smallint) stored,
    attempts      smallint    not null default 0,
    last_error    text        null,
    parked_at     timestamptz null,
    discarded_at  timestamptz null,

    constraint outbox_pkey primary key (id, created_at),
    -- Pending (attempts = 0), retrying (attempts > 0), published, parked or discarded: never two at once.
    constraint outbox_one_state check (num_nonnulls(published_at, parked_at, discarded_at) <= 1),
    constraint outbox_parked_has_reason check (parked_at is null or last_error is not null),
    -- Anything else comes from a writer by mistake, and some clients cannot even read it.
    constraint outbox_created_at_sane check (created_at >= '2000-01-01' and created_at < '3000-01-01'),
    constraint outbox_aggregate_id_length check (length(aggregate_id) between 1 and 255),
    constraint outbox_topic_name check (topic ~ '^[a-zA-Z0-9._-]{1,249}$'),
    constraint outbox_headers_object check (jsonb_typeof(headers) = 'object'),
    -- Below every broker's default limit of 1 MiB, so that an unsendable row is hardly born.
    constraint outbox_payload_size check (pg_column_size(payload) <= 524288),
    constraint outbox_headers_size check (pg_column_size(headers) <= 16384)
) partition by range (created_at);

-- Takes every row that no daily partition wants, so that an insert never fails.
create table outbox_default partition of outbox default;

-- "What is next in this shard?" and nothing else.
create index outbox_pending on outbox (shard, id)
    where published_at is null and parked_at is null and discarded_at is null;

-- One row for each shard: a publisher locks these, never outbox rows (ARCHITECTURE.md, "Why order holds").
create table outbox_shard (
    shard smallint not null,
    constraint outbox_shard_pkey primary key (shard),
    constraint outbox_shard_range check (shard between 0 and 63)
);
insert into outbox_shard (shard) select generate_series(0, 63)::smallint;

-- Names this outbox. New rows carry the name; rows that are there keep theirs.
create function outbox_set_source(name text) returns void language plpgsql as $$
begin
    if name !~ '^[a-z][a-z0-9-]{0,62}$' then
        raise exception 'outbox source % must match [a-z][a-z0-9-]{0,62}', quote_literal(name);
    end if;
    execute format('alter table outbox alter column source set default %L', name);
end
$$;

-- For any writer that does not hold its aggregate's row lock: takes a lock on the aggregate *before* the id is
-- drawn, so that id order is commit order. Returns the new row's id.
create function outbox_append(
    aggregate_id text,
    topic text,
    payload jsonb,
    event_type text default null,
    headers jsonb default '{}'
) returns bigint language plpgsql as $$
declare
    new_id bigint;
begin
    perform pg_advisory_xact_lock(hashtextextended(outbox_append.aggregate_id, 1));
    insert into outbox (aggregate_id, topic, payload, event_type, headers)
    values (outbox_append.aggregate_id, outbox_append.topic, outbox_append.payload,
            outbox_append.event_type, coalesce(outbox_append.headers, '{}'))
    returning id into new_id;
    return new_id;
end
$$;
