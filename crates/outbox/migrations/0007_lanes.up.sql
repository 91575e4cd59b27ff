-- For exactly-once delivery: each lane is a quarter of the shards, with a Kafka transactional id of its own. The offset is that
-- of the lane's newest record in the progress topic whose rows are marked; whoever takes the lane over reads on from there.
create table outbox_lane (
    lane smallint not null,
    progress_offset bigint not null default 0,
    constraint outbox_lane_pkey primary key (lane),
    constraint outbox_lane_range check (lane between 0 and 3),
    constraint outbox_lane_offset check (progress_offset >= 0)
);
insert into outbox_lane (lane) select generate_series(0, 3)::smallint;

-- The name that new rows carry.
create function outbox_source_name() returns text language sql stable as $$
    select split_part(pg_get_expr(d.adbin, d.adrelid), '''', 2)
      from pg_attrdef d
      join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
     where d.adrelid = 'outbox'::regclass and a.attname = 'source'
$$;
