-- What can be ordered. Prices in the currency's minor unit.
create table menu (
    sku         text   not null,
    name        text   not null,
    price_minor bigint not null,
    currency    text   not null,
    constraint menu_pkey primary key (sku),
    constraint menu_price_positive check (price_minor > 0),
    constraint menu_currency_iso check (currency ~ '^[A-Z]{3}$')
);

insert into menu (sku, name, price_minor, currency) values
    ('espresso',      'Espresso',          250, 'EUR'),
    ('americano',     'Americano',         300, 'EUR'),
    ('cappuccino',    'Cappuccino',        380, 'EUR'),
    ('flat-white',    'Flat white',        400, 'EUR'),
    ('latte',         'Caffè latte',       420, 'EUR'),
    ('mocha',         'Mocha',             450, 'EUR'),
    ('croissant',     'Croissant',         280, 'EUR'),
    ('panettone',     'Panettone, whole', 2400, 'EUR');

create table orders (
    id                  bigint      not null generated always as identity,
    customer            text        not null,
    status              text        not null,
    total_minor         bigint      not null,
    currency            text        not null,
    version             bigint      not null,
    -- The caller's name for this order, and a hash of what was asked for under that name.
    idempotency_key     text        not null,
    request_fingerprint bytea       not null,
    created_at          timestamptz not null default now(),
    constraint orders_pkey primary key (id),
    constraint orders_idempotency_key_once unique (idempotency_key),
    constraint orders_status_known check (status in ('pending')),
    constraint orders_total_positive check (total_minor > 0),
    constraint orders_version_positive check (version > 0)
);

-- "This customer's orders, newest first."
create index orders_by_customer on orders (customer, id desc);

create table order_lines (
    order_id         bigint  not null,
    position         integer not null,
    sku              text    not null,
    quantity         integer not null,
    unit_price_minor bigint  not null,
    constraint order_lines_pkey primary key (order_id, position),
    constraint order_lines_sku_once unique (order_id, sku),
    constraint order_lines_of_order foreign key (order_id) references orders (id),
    constraint order_lines_quantity check (quantity between 1 and 1000),
    constraint order_lines_price_positive check (unit_price_minor > 0)
);
