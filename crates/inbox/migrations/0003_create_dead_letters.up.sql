-- Dead letters that an aggregate waits behind, each by the place where its record first stood: the bad one, and those
-- that came after it and wait. The consumer writes a row when it gives a record up, and deletes it in the transaction
-- that applies that record after all. Empty as a rule.
create table dead_letter_waits (
    consumer      text        not null,
    topic         text        not null,
    aggregate_id  text        not null,
    partition     integer     not null,
    record_offset bigint      not null,
    outbox_id     bigint      null,
    since         timestamptz not null default now(),
    constraint dead_letter_waits_pkey primary key (consumer, topic, aggregate_id, partition, record_offset)
);

-- What was decided about dead letters, by where they stand (topic is the dead letter topic) and what they are of: a topic
-- that is made anew counts from zero again.
create table dead_letter_decisions (
    id            bigint      not null generated always as identity,
    at            timestamptz not null default clock_timestamp(),
    action        text        not null,
    topic         text        not null,
    partition     integer     not null,
    record_offset bigint      not null,
    origin        text        not null,
    by_whom       text        not null,
    why           text        not null,
    constraint dead_letter_decisions_pkey primary key (id),
    constraint dead_letter_decisions_action check (action in ('redrive', 'discard'))
);

create index dead_letter_decisions_topic on dead_letter_decisions (topic);
