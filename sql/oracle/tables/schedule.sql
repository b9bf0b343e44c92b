-- A row is a schedule: maintain adds its message to the queue in the transaction that moves
-- next_run_at on. next_run_at is null while it is paused, and after its last tick. schedule_key is
-- what is compared: the bytes of the name, whatever NLS_COMP and NLS_SORT a session has. The
-- foreign key needs no index of its own, because part_id stands first in the primary key; it makes
-- an insert fail that has waited for drop_queue.
create table rowq_schedule (
    part_id          number(10) not null,
    schedule_key     raw(400) not null,
    schedule_name    varchar2(100 char) not null,
    cron             varchar2(200 char),
    interval_seconds number,
    time_zone        varchar2(100 char) not null,
    missed           varchar2(10 char) not null,
    overlap          number(1) not null,
    starts_at        timestamp(6) not null,
    ends_at          timestamp(6),
    message_type     varchar2(200 char),
    priority         number(1) not null,
    group_key        varchar2(200 char),
    max_attempts     number(5),
    is_paused        number(1) default 0 not null,
    next_run_at      timestamp(6),
    last_run_at      timestamp(6),
    last_message_id  number(19),
    last_error       varchar2(1000 char),
    headers          clob,
    body             clob,
    body_binary      blob,
    constraint rowq_schedule_pk primary key (part_id, schedule_key),
    constraint rowq_schedule_queue_fk foreign key (part_id) references rowq_queue (part_id),
    constraint rowq_schedule_cron_ck check (
        cron is null and interval_seconds is not null
        or cron is not null and interval_seconds is null
    ),
    constraint rowq_schedule_missed_ck check (missed in ('skip', 'once', 'all')),
    constraint rowq_schedule_overlap_ck check (overlap in (0, 1)),
    constraint rowq_schedule_is_paused_ck check (is_paused in (0, 1)),
    constraint rowq_schedule_headers_ck check (headers is json strict)
)
segment creation immediate
initrans 16 pctfree 40
lob (headers) store as securefile rowq_schedule_headers (enable storage in row cache)
lob (body) store as securefile rowq_schedule_body (enable storage in row cache)
lob (body_binary) store as securefile rowq_schedule_binary (enable storage in row cache)
/
