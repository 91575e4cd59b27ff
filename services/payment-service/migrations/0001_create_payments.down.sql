drop table gateway_calls;
drop table payments;
