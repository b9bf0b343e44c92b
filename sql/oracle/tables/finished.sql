-- A row is a finished message of a queue that keeps an archive. It stays until the archive routine
-- has moved it. The messages that one call has finished have the same finish_id.
create table rowq_finished (
    part_id     number(10) not null,
    finish_id   number(19) not null,
    message_id  number(19) not null,
    lane        number(2) not null,
    attempt     number(5) not null,
    state       varchar2(20 char) not null,
    finished_at timestamp(6) not null,
    constraint rowq_finished_pk primary key (part_id, finish_id, message_id)
)
organization index initrans 32
/
