-- A row is a lane of a part. create_queue makes twenty for messages (priority * 2, plus 1 for the
-- tail). floor is where the live rows of the lane begin: a hint that spares readers the dead rows
-- below it, which InnoDB keeps as long as a read view may want them. dequeue moves the floor up
-- behind what it took, but never nearer than half a second to now. maintain looks from 0
-- (internal_rescan_floors) and corrects the floor, so a wrong floor delays a message and never
-- loses one. Lanes below 0 stand for the other tables that are read from their low end: -1 claim
-- (claim_id), -2 delayed (due_at in microseconds since 1970), -3 finished (finish_id). A lock on
-- one of these rows elects one session: on -1 for maintain, on -3 for its archive part, and on -4,
-- which stands for no table, for the waiter of dequeue_wait that looks for all. A lane that was
-- never used is closed, and dequeue does not look into it. While maintain finds messages in a
-- closed lane whose row an open transaction holds, it sets is_open of lane -1, so that dequeue
-- looks into closed lanes too. maintain passes over an idle queue until sweep_at of lane -1.
create table if not exists rowq.lane (
    part_id     int not null,
    lane        smallint not null,
    is_open     boolean not null default false,
    floor       bigint not null default 0,
    check_after datetime(6) not null default '1970-01-01 00:00:00',
    sweep_at    datetime(6) not null default '1970-01-01 00:00:00',
    primary key (part_id, lane)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Lanes of each queue, and where their live rows begin, so that no reader walks the dead rows before them.'
stats_persistent = 1 stats_auto_recalc = 0;
