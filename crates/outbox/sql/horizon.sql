-- This transaction's id, and the oldest that has not ended.
select pg_current_xact_id()::text::bigint, pg_snapshot_xmin(pg_current_snapshot())::text::bigint
