-- A row says where the live rows of a lane begin, so that no reader walks the dead rows before
-- them, however long an old snapshot keeps those from being cleaned up. The table is a ledger: rows
-- are added and deleted and never updated. generation counts down, so that the newest row of a lane
-- is the first in the key and is found in one step. Lanes below 0 stand for the other tables that
-- are read from their low end: -1 claim (by claim_id), -2 delayed (by due_at, in microseconds), -3
-- finished (by finish_id), -4 deferred (by due_at, in microseconds), which only queues with groups
-- have, -5 started (by started_at, in microseconds), which only those with a rate_limit have, -6
-- expiry (by expires_at, in microseconds), which only those with messages that expire have, -7
-- result (by finished_at, in microseconds), which only those have that have purged results, and -8
-- history (by ended_at, in microseconds), which only those have that have purged history. A lane
-- that has never been maintained has rows with positive generations, which producers have written.
create table if not exists rowq.floor (
    part_id    integer not null,
    lane       smallint not null,
    generation bigint not null,
    seq        bigint not null,
    safe       bigint not null,
    frontier   bigint not null,
    writers    xid8 not null,
    rescan_at  timestamp with time zone not null,
    sweep_at   timestamp with time zone not null,
    constraint floor_pk primary key (part_id, lane, generation)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0
);
