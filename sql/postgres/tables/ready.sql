-- A row is a message that waits for a worker. The primary key is the dequeue order, and there is no
-- second index. lane is priority * 2, plus 1 for the tail: a message that is released or reaped
-- goes to the front lane, so that seq only grows inside a lane.
create table if not exists rowq.ready (
    part_id    integer not null,
    lane       smallint not null,
    attempt    smallint not null default 0,
    seq        bigint not null default nextval('rowq.message_seq'),
    message_id bigint not null,
    last_error text,
    constraint ready_pk primary key (part_id, lane, seq)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);
