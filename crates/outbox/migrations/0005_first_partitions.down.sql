-- The partitions stay: they may have rows, and they go with the table.
select 1;
