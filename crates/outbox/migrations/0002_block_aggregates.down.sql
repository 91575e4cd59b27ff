drop table outbox_decisions;
drop table outbox_control;
drop table outbox_blocked;
alter table outbox_shard drop column epoch;
alter table outbox drop constraint outbox_topic_name;
alter table outbox add constraint outbox_topic_name check (topic ~ '^[a-zA-Z0-9._-]{1,249}$');
drop index outbox_parked;
drop index outbox_held;
create index outbox_pending on outbox (shard, id)
    where published_at is null and parked_at is null and discarded_at is null;
drop index outbox_ready;
alter table outbox drop constraint outbox_held_is_unsent, drop column held;
