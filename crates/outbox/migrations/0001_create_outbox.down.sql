drop function outbox_append(text, text, jsonb, text, jsonb);
drop function outbox_set_source(text);
drop table outbox_shard;
drop table outbox;
