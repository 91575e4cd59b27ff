drop index orders_confirmed;
