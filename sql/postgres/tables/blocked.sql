-- A row is a message that waits for others to end, its predecessors, kept apart so that dequeue
-- does not read it. It waits for one of them at a time, the newest that has not ended
-- (predecessor_id, with a row in successor); rest_ids are the others that it may still have to ask
-- for, in order.
create table if not exists rowq.blocked (
    part_id        integer not null,
    lane           smallint not null,
    message_id     bigint not null,
    predecessor_id bigint,
    due_at         timestamp with time zone,
    on_dead        text,
    group_key      text,
    rest_ids       bigint[],
    constraint blocked_pk primary key (part_id, message_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);
