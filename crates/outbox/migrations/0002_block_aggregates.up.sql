-- An aggregate whose next row cannot be sent waits behind it, and its rows leave the index that claims read: twenty
-- thousand of them cost a claim nothing.
alter table outbox
    -- Waits behind an earlier row of its aggregate, or for the next try of its own.
    add column held boolean not null default false,
    add constraint outbox_held_is_unsent check (not held or (published_at is null and discarded_at is null));

-- The same rule as before. A bounded repetition, {1,249}, cost 35 microseconds a row, at the insert and again at the mark.
alter table outbox drop constraint outbox_topic_name;
alter table outbox add constraint outbox_topic_name
    check (length(topic) between 1 and 249 and topic !~ '[^a-zA-Z0-9._-]');

create index outbox_ready on outbox (shard, id)
    where published_at is null and parked_at is null and discarded_at is null and not held;
drop index outbox_pending;
create index outbox_held on outbox (aggregate_id, id) where held;
create index outbox_parked on outbox (parked_at) where parked_at is not null;

-- Changed only by who holds the aggregate's shard.
create table outbox_blocked (
    aggregate_id text        not null,
    shard        smallint    not null
        generated always as ((hashtextextended(aggregate_id, 0) & 63)::smallint) stored,
    -- The row that cannot be sent: the aggregate's first unsent one.
    outbox_id    bigint      not null,
    created_at   timestamptz not null,
    topic        text        not null,
    reason       text        not null,
    attempts     integer     not null default 1,
    since        timestamptz not null default clock_timestamp(),
    -- When the row is tried again; null: it is parked, and a person decides.
    retry_at     timestamptz null,
    constraint outbox_blocked_pkey primary key (aggregate_id)
);
create index outbox_blocked_by_shard on outbox_blocked (shard);
create index outbox_blocked_due on outbox_blocked (retry_at) where retry_at is not null;

-- Grows when rows of the shard become pending again. Publishers that remember which ids they have passed forget it then.
alter table outbox_shard add column epoch bigint not null default 0;

-- The transaction has an id before the row has one, so that publishers can tell from the oldest open transaction that no
-- lower row can come any more.
create or replace function outbox_append(
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
    perform pg_current_xact_id();
    insert into outbox (aggregate_id, topic, payload, event_type, headers)
    values (outbox_append.aggregate_id, outbox_append.topic, outbox_append.payload,
            outbox_append.event_type, coalesce(outbox_append.headers, '{}'))
    returning id into new_id;
    return new_id;
end
$$;

-- One row: whether this outbox is published at all.
create table outbox_control (
    only_row   boolean     not null default true,
    paused_at  timestamptz null,
    paused_by  text        null,
    paused_why text        null,
    constraint outbox_control_pkey primary key (only_row),
    constraint outbox_control_one_row check (only_row),
    constraint outbox_control_paused_by check ((paused_at is null) = (paused_by is null))
);
insert into outbox_control default values;

-- What people have decided about rows, and why. Nothing here is ever changed.
create table outbox_decisions (
    id           bigint      not null generated always as identity,
    at           timestamptz not null default clock_timestamp(),
    action       text        not null,
    outbox_id    bigint      null,
    aggregate_id text        null,
    by_whom      text        not null,
    why          text        not null,
    constraint outbox_decisions_pkey primary key (id),
    constraint outbox_decisions_action check (action in ('redrive', 'skip-head', 'discard', 'pause', 'resume'))
);
