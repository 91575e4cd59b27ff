-- The plans are pinned by the statements' shape and by these: with the default settings the planner may walk the primary
-- key past every other shard's rows, or keep for a full outbox what it chose for an empty one. Set for the transaction
-- only, so that it works behind PgBouncer.
set local plan_cache_mode = force_generic_plan;
set local enable_sort = off;
set local enable_seqscan = off;
set local enable_bitmapscan = off;
set local jit = off;
