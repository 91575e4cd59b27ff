-- The plan is pinned by the statements' shape and by these: with the default settings the planner may walk the
-- primary key past every other shard's rows. Losing a mark to a crash of Postgres costs a repeat, never an event, so
-- the commit need not wait for the disk. Set for the transaction only, so that it works behind PgBouncer.
set local plan_cache_mode = force_generic_plan;
set local enable_sort = off;
set local enable_seqscan = off;
set local enable_bitmapscan = off;
set local jit = off;
set local synchronous_commit = off;
