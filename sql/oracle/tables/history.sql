-- A row is an attempt that has ended, in a queue with history_days. It stays until maintain finds
-- it older than these. There is no partition a day: a partition is dropped by a statement that
-- commits, and that whoever finishes messages would wait for. Rows are only added and deleted.
create table rowq_history (
    part_id     number(10) not null,
    ended_at    timestamp(6) not null,
    message_id  number(19) not null,
    claim_id    number(19) not null,
    attempt     number(5) not null,
    leased_at   timestamp(6) not null,
    outcome     varchar2(20 char) not null,
    worker_name varchar2(200 char),
    error       clob,
    constraint rowq_history_pk primary key (part_id, ended_at, message_id, claim_id)
        using index (
            create unique index rowq_history_pk
                on rowq_history (part_id, ended_at, message_id, claim_id) initrans 32
        ),
    constraint rowq_history_outcome_ck check (
        outcome in ('completed', 'retrying', 'dead', 'released', 'lease_expired', 'cancelled')
    )
)
segment creation immediate
initrans 32 pctfree 5
lob (error) store as securefile rowq_history_error (enable storage in row cache)
/
create index rowq_history_message_ix on rowq_history (part_id, message_id) initrans 32
/
