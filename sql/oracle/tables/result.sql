-- A row says how a message has ended, in a queue with result_seconds. It stays until maintain finds
-- it older than these, or the message, which is dead, is reset. A result is JSON text as complete
-- was given it. The server of 19c takes no text or number by itself for JSON, so nothing checks it
-- here.
create table rowq_result (
    part_id     number(10) not null,
    message_id  number(19) not null,
    finished_at timestamp(6) not null,
    state       varchar2(20 char) not null,
    result      clob,
    last_error  clob,
    constraint rowq_result_pk primary key (part_id, message_id)
        using index (
            create unique index rowq_result_pk on rowq_result (part_id, message_id) initrans 32
        ),
    constraint rowq_result_state_ck check (state in ('completed', 'cancelled', 'expired', 'dead'))
)
segment creation immediate
initrans 32 pctfree 10
lob (result) store as securefile rowq_result_result (enable storage in row cache)
lob (last_error) store as securefile rowq_result_error (enable storage in row cache)
/
create index rowq_result_finished_ix on rowq_result (part_id, finished_at) initrans 32
/
