-- Reservations go on after the decision: committed when the order is confirmed, released when it is cancelled. A cancel
-- that comes first is a released reservation without lines.
alter table reservations drop constraint reservations_status_known;
alter table reservations add constraint reservations_status_known
    -- 'new' and 'deciding' stand only inside the transaction that decides.
    check (status in ('new', 'deciding', 'reserved', 'rejected', 'committed', 'released'));

-- Goods that came in; the key makes a repeated call one delivery.
create table restocks (
    idempotency_key text        not null,
    sku             text        not null,
    quantity        integer     not null,
    restocked_at    timestamptz not null default now(),
    constraint restocks_pkey primary key (idempotency_key),
    constraint restocks_of_stock foreign key (sku) references stock (sku),
    constraint restocks_quantity_positive check (quantity > 0)
);

-- What there was before any order, so that the books can be added up.
alter table stock add column opening bigint not null default 0;
update stock s
   set opening = s.available + (select coalesce(sum(l.quantity), 0)
                                  from reservation_lines l
                                  join reservations r on r.order_id = l.order_id
                                 where l.sku = s.sku and r.status = 'reserved');
