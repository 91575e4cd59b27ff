-- Days that have rows in the default partition, oldest first.
select distinct (created_at at time zone 'UTC')::date as day from outbox_default order by day limit 31
