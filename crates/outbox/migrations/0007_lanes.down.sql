drop function outbox_source_name();
drop table outbox_lane;
