-- One payment an order. A cancel that comes before its order leaves a payment that is cancelled from the start.
create table payments (
    order_id         text        not null,
    amount_minor     bigint      not null,
    currency         text        not null,
    token            text        not null,
    status           text        not null,
    -- The order was cancelled while a call was under way: undo when it has answered.
    cancel_requested boolean     not null default false,
    -- The provider's name for the money that it holds.
    authorization_id uuid        null,
    version          bigint      not null,
    updated_at       timestamptz not null default now(),
    constraint payments_pkey primary key (order_id),
    constraint payments_status_known check (status in ('authorizing', 'authorized', 'declined', 'capturing',
        'captured', 'capture_failed', 'voiding', 'voided', 'refunding', 'refunded', 'cancelled')),
    constraint payments_amount check (amount_minor > 0 or status = 'cancelled')
);

-- The second outbox: calls to the provider, written in the transaction that decides on them. The key is stored before
-- the call is made, and a call that gave no answer is made again with the same key and the same bytes.
create table gateway_calls (
    id               bigint      not null generated always as identity,
    order_id         text        not null,
    operation        text        not null,
    idempotency_key  text        not null,
    request          jsonb       not null,
    trace            jsonb       not null,
    state            text        not null default 'pending',
    attempts         integer     not null default 0,
    -- Not before this; moved on while a worker has the call, so that another takes over if that one dies.
    due_at           timestamptz not null default now(),
    first_tried_at   timestamptz null,
    last_error       text        null,
    constraint gateway_calls_pkey primary key (id),
    constraint gateway_calls_key_once unique (idempotency_key),
    constraint gateway_calls_of_payment foreign key (order_id) references payments (order_id),
    constraint gateway_calls_operation_known check (operation in ('authorize', 'capture', 'void', 'refund')),
    -- 'stuck': the provider's answer makes no sense; a person must look.
    constraint gateway_calls_state_known check (state in ('pending', 'done', 'stuck'))
);
create index gateway_calls_due on gateway_calls (due_at) where state = 'pending';
