-- A row is a lane of a part. create_queue makes twenty for messages (priority * 2, plus 1 for the
-- tail). floor is where the live rows of the lane begin: a hint that spares readers the dead rows
-- below it, which InnoDB keeps as long as a read view may want them. dequeue moves the floor up
-- behind what it took, but never nearer than half a second to now. maintain looks from 0
-- (internal_rescan_floors) and corrects the floor, so a wrong floor delays a message and never
-- loses one. Lanes below 0 stand for the other tables that are read from their low end: -1 claim
-- (claim_id), -2 delayed (due_at in microseconds since 1970), -3 finished (finish_id), -4 deferred
-- (due_at, too), -5 started (started_at, too), -6 expiry (expires_at, too), -7 result (finished_at,
-- too), -8 history (ended_at, too), and -9 the claims once more, for those who count them: its
-- floor never passes a claim that may yet be committed. A lock on one of these rows elects one
-- session: on -1 for maintain, on -3 for its archive part, and on -20, which stands for no table,
-- for the waiter of dequeue_wait that looks for all. Dequeue does not look into a closed lane,
-- and where only one is open, it takes a short way. The tail of the default priority (11) is
-- always open; another lane is opened by the first message that is put there, and maintain closes
-- an empty front lane again, not
-- before its sweep_at. While an open transaction holds the row of a closed lane, so that others
-- cannot open it, is_open of a lane below 0 has dequeue look into closed lanes too: maintain sets
-- it of lane -1, others leave a mark, a row of a random lane that is below -1000, which maintain
-- deletes. maintain passes over an idle queue until the sweep_at of lane -1.
create table if not exists rowq.lane (
    part_id     int not null comment 'The queue; never used again for another one.',
    lane        smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.',
    is_open     boolean not null default false comment 'Whether dequeue looks into the lane; a mark of its own where the lane is below 0.',
    floor       bigint not null default 0 comment 'Where the live rows of the lane begin: a hint.',
    check_after datetime(6) not null default '1970-01-01 00:00:00' comment 'No rescan looks at the lane before this moment.',
    sweep_at    datetime(6) not null default '1970-01-01 00:00:00' comment 'No sweep, a rescan from the very start, begins before this moment.',
    primary key (part_id, lane)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Lanes of each queue, and where their live rows begin, so that no reader walks the dead rows before them.'
stats_persistent = 1 stats_auto_recalc = 0;
