-- A row says which message waits for which other one. Whoever ends a message whose has_successors
-- is true deletes its rows, in the same transaction.
create table if not exists rowq.successor (
    part_id        integer not null,
    predecessor_id bigint not null,
    message_id     bigint not null,
    constraint successor_pk primary key (part_id, predecessor_id, message_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);
