#!/bin/sh
# Appends one event of the aggregate $1. In psql; the database is in DATABASE_URL.
set -eu
psql "$DATABASE_URL" --no-psqlrc --quiet --output /dev/null -v ON_ERROR_STOP=1 -v aggregate="$1" <<'SQL'
begin;
-- Here goes the change that the event tells of: both are committed, or neither.
select outbox_append(:'aggregate', 'brew.ratings.v1', jsonb_build_object('type', 'coffee.rated', 'stars', 5));
commit;
SQL
