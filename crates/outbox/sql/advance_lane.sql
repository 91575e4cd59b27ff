-- $1: a lane, $2: the offset behind its newest progress record whose rows are marked.
update outbox_lane set progress_offset = $2 where lane = $1
