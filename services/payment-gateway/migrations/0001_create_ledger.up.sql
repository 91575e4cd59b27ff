-- The provider's own books, apart from everything of the shop's.
create table authorizations (
    id           uuid        not null,
    -- The merchant's name for what is paid. Not unique: a merchant who authorizes twice holds the money twice.
    reference    text        not null,
    amount_minor bigint      not null,
    currency     text        not null,
    token        text        not null,
    status       text        not null,
    created_at   timestamptz not null default now(),
    constraint authorizations_pkey primary key (id),
    constraint authorizations_amount_positive check (amount_minor > 0),
    constraint authorizations_status_known check (status in ('authorized', 'voided', 'captured', 'refunded'))
);
create index authorizations_by_reference on authorizations (reference);

-- What was done, once each. Nothing here is ever changed.
create table ledger (
    id               bigint      not null generated always as identity,
    operation        text        not null,
    authorization_id uuid        not null,
    reference        text        not null,
    amount_minor     bigint      not null,
    currency         text        not null,
    idempotency_key  text        not null,
    at               timestamptz not null default clock_timestamp(),
    constraint ledger_pkey primary key (id),
    constraint ledger_key_once unique (idempotency_key),
    constraint ledger_of_authorization foreign key (authorization_id) references authorizations (id),
    constraint ledger_operation_known check (operation in ('authorize', 'capture', 'void', 'refund'))
);

-- Answers by idempotency key.
create table answers (
    idempotency_key text        not null,
    fingerprint     bytea       not null,
    status          integer     not null,
    body            jsonb       not null,
    answered_at     timestamptz not null default now(),
    constraint answers_pkey primary key (idempotency_key)
);

-- How often a key was tried, so that "goes wrong once" is once.
create table attempts (
    idempotency_key text    not null,
    count           integer not null,
    constraint attempts_pkey primary key (idempotency_key)
);
