-- A row says how a message has ended, in a queue with result_seconds. It stays until maintain finds
-- it older than these, or the message, which is dead, is reset.
create table if not exists rowq.result (
    part_id     integer not null,
    message_id  bigint not null,
    finished_at timestamp with time zone not null,
    state       text not null,
    result      jsonb,
    last_error  text,
    constraint result_pk primary key (part_id, message_id),
    constraint result_state_ck check (state in ('completed', 'cancelled', 'expired', 'dead'))
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

create index if not exists result_finished_ix on rowq.result (part_id, finished_at);
