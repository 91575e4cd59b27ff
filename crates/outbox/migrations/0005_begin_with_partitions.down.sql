-- Partitions stay: they may have rows.
select 1;
