-- The lanes of a part: twenty for messages (priority * 2, plus 1 for the tail), made by
-- create_queue. floor is where the live rows of the lane begin: a hint that spares readers the
-- ghosts below it, which stay as long as a row version may be wanted (a snapshot, a readable
-- secondary, accelerated recovery). dequeue moves it up behind what it took, but never nearer than
-- half a second to now; maintain looks from 0 and puts right what is wrong with it, so a floor that
-- is off delays a message and never loses one. Lanes below 0 stand for the other tables that are
-- read from their low end: -1 claim (claim_id), -2 delayed (due_at) and -3 finished (finished_at),
-- these in microseconds since 1970. A lane that was never used is closed, and dequeue does not look
-- into it.
-- Everything here is a hint, so it is read with "readuncommitted" and waits for nobody; it is
-- changed with "xlock, readpast": who is second leaves it be. Lane -4 is for guests: a dequeue in
-- its caller's transaction holds it shared to the end, and a floor only moves up while nobody does,
-- so that it never passes what may still be rolled back. Whoever locks lane -5 is elected to keep
-- house.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.lane') is null
create table rowq.lane (
    part_id     int not null,
    lane        smallint not null,
    is_open     bit not null constraint lane_is_open_df default 0,
    floor       bigint not null constraint lane_floor_df default 0,
    check_after datetime2(6) not null constraint lane_check_after_df default '19700101',
    constraint lane_pk primary key clustered (part_id, lane)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.lane set (lock_escalation = disable);
go
