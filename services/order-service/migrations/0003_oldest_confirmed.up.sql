-- "How old is the oldest order that is confirmed and not yet final?" Of pending ones orders_answer_due says it.
create index orders_confirmed on orders (created_at) where status = 'confirmed';
