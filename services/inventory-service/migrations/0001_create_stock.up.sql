-- What is on the shelf and not set aside.
create table stock (
    sku       text   not null,
    available bigint not null,
    constraint stock_pkey primary key (sku),
    constraint stock_never_below_zero check (available >= 0)
);

insert into stock (sku, available) values
    ('espresso',   1000000),
    ('americano',  1000000),
    ('cappuccino', 1000000),
    ('flat-white', 1000000),
    ('latte',      1000000),
    ('mocha',      1000000),
    ('croissant',  1000000),
    -- Few, so that an order for many is turned down.
    ('panettone',        5);

-- One decision an order: the second line of defence behind processed_outbox_ids.
create table reservations (
    order_id   text        not null,
    status     text        not null,
    version    bigint      not null,
    decided_at timestamptz not null default now(),
    constraint reservations_pkey primary key (order_id),
    -- 'deciding' stands only inside the transaction that decides.
    constraint reservations_status_known check (status in ('deciding', 'reserved', 'rejected'))
);

create table reservation_lines (
    order_id text    not null,
    sku      text    not null,
    quantity integer not null,
    constraint reservation_lines_pkey primary key (order_id, sku),
    constraint reservation_lines_of_reservation foreign key (order_id) references reservations (order_id),
    constraint reservation_lines_of_stock foreign key (sku) references stock (sku),
    constraint reservation_lines_quantity_positive check (quantity > 0)
);
