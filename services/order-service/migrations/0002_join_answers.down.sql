drop table order_history;
drop index orders_answer_due;
alter table orders drop constraint orders_completed_is_whole;
alter table orders drop constraint orders_cancelled_has_reason;
alter table orders drop constraint orders_payment_known;
alter table orders drop constraint orders_stock_known;
alter table orders drop constraint orders_status_known;
-- Orders that have gone on are not known to the version before: they wait again.
update orders set status = 'pending';
alter table orders add constraint orders_status_known check (status in ('pending'));
alter table orders
    drop column trace,
    drop column answer_due_at,
    drop column cancel_reason,
    drop column payment,
    drop column stock;
