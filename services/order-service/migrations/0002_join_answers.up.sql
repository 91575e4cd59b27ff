-- An order goes on: what stock and payment have answered, and what that made of it (docs/states.md).
alter table orders
    add column stock         text        not null default 'none',
    add column payment       text        not null default 'none',
    add column cancel_reason text        null,
    -- Pending orders are cancelled after this.
    add column answer_due_at timestamptz not null default now() + interval '1 minute',
    -- Trace context of the order's creation, so that a timeout stays in the order's trace.
    add column trace         jsonb       not null default '{}';

alter table orders drop constraint orders_status_known;
alter table orders
    add constraint orders_status_known check (status in ('pending', 'confirmed', 'cancelled', 'completed')),
    add constraint orders_stock_known check (stock in ('none', 'reserved', 'rejected', 'committed', 'released')),
    add constraint orders_payment_known check (payment in
        ('none', 'authorized', 'declined', 'captured', 'capture_failed', 'voided', 'refunded')),
    add constraint orders_cancelled_has_reason check ((status = 'cancelled') = (cancel_reason is not null)),
    add constraint orders_completed_is_whole
        check (status <> 'completed' or (stock = 'committed' and payment = 'captured'));

-- "Which pending orders have waited too long?"
create index orders_answer_due on orders (answer_due_at) where status = 'pending';

-- Each step of each order: from where to where, why, when.
create table order_history (
    order_id    bigint      not null,
    version     bigint      not null,
    from_status text        not null,
    to_status   text        not null,
    -- An event type, 'timed_out' or 'cancel_requested'.
    cause       text        not null,
    -- The event that caused it, if one did.
    event_id    uuid        null,
    at          timestamptz not null default clock_timestamp(),
    constraint order_history_pkey primary key (order_id, version),
    constraint order_history_of_order foreign key (order_id) references orders (id),
    constraint order_history_edges check ((from_status, to_status) in (
        ('pending', 'confirmed'), ('pending', 'cancelled'), ('confirmed', 'cancelled'),
        ('confirmed', 'completed')))
);
