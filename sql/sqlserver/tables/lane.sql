-- A row is a lane of a part. create_queue makes twenty for messages (priority * 2, plus 1 for the
-- tail). floor is where the live rows of the lane begin: a hint that spares readers the ghosts
-- below it. A ghost is a deleted row that the engine keeps as long as a row version may be wanted
-- (by a snapshot, a readable secondary or accelerated recovery). dequeue moves the floor up to what
-- it took, but never nearer than half a second to now. maintain looks from 0 and corrects the
-- floor, so a wrong one delays a message and never loses one. Lanes below 0 stand for the other
-- tables that are read from their low end: -1 claim (claim_id), -2 delayed (due_at) and -3 finished
-- (finished_at), the last two in microseconds since 1970. A lane that was never used is closed, and
-- dequeue does not look into it; lane -3 is closed while the part has nothing in the archive.
-- Everything here is a hint, so it is read with "readuncommitted", which waits for nobody, and
-- changed with "xlock, readpast", which leaves a row alone that another session is changing. Lane
-- -22 is for guests, that is for calls in the caller's transaction: a guest that takes messages
-- holds this row shared to the end of the transaction, and a floor moves up only while nobody holds
-- it, so that it never passes rows that a rollback would put back. The session that locks lane -21
-- is the one that is elected to run maintain for the part; it looks at the days of the archive when
-- check_after of that row is over. Lane -4 is for deferred (due_at): it is
-- closed, and its floor is not looked for, until maintain has seen a row there. So are lane -5, for
-- started (started_at), lane -7, for result (finished_at), lane -8, for history (ended_at), which
-- is closed until the first purge, and lane -6, for expiry (expires_at): maintain opens that one
-- before it forgets the first row, so a part with neither has no message that expires.
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
