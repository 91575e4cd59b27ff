"""Appends one event of the aggregate that is the argument. The database is in DATABASE_URL; needs psycopg 3."""

import os
import sys

import psycopg
from psycopg.types.json import Jsonb

# Leaving the block commits, an exception rolls back.
with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    # Here goes the change that the event tells of, on the same connection: both are committed, or neither.
    connection.execute(
        "select outbox_append(%s, %s, %s)",
        (sys.argv[1], "brew.ratings.v1", Jsonb({"type": "coffee.rated", "stars": 5})),
    )
