-- A row is a lane of a part. create_queue makes twenty for messages (priority * 2, plus 1 for the
-- tail). floor_seq is where the live rows of the lane begin: a hint that spares readers the emptied
-- index blocks below it. Only maintain moves it (internal_rescan_floors), never nearer than half a
-- second to now. It looks from 0, so a wrong floor delays a message and never loses one. Lanes
-- below 0 stand for the other tables that are read from their low end: -1 claim (claim_id), -2
-- delayed (due_at in microseconds since 1970), -3 finished (finish_id), -4 deferred (due_at,
-- likewise), -5 started (started_at, likewise), -6 expiry (expires_at, likewise), -7 result
-- (finished_at, likewise), -8 history (ended_at, likewise). The session that is elected to run
-- maintain for the part holds the row of lane -1. A lane that was never used is closed, and dequeue
-- does not look into it; of those below 0 only lane -4 is ever opened. There are few rows; initrans
-- and pctfree leave their blocks room for many lock entries.
create table rowq_lane (
    part_id     number(10) not null,
    lane        number(2) not null,
    is_open     number(1) default 0 not null,
    floor_seq   number(19) default 0 not null,
    check_after timestamp(6) default timestamp '1970-01-01 00:00:00' not null,
    constraint rowq_lane_pk primary key (part_id, lane),
    constraint rowq_lane_is_open_ck check (is_open in (0, 1))
)
segment creation immediate
initrans 16 pctfree 40
/
