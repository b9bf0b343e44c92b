-- A row is a token that its last owner could not pass on, because another transaction held what it
-- looked at, or because the group rests. is_hint says that there may be no token: a message waits
-- whose producer could lock no token of the group, or the group's limit was raised. maintain looks
-- at what is due, and so does a dequeue that finds nothing, once lane -4 is open.
create table rowq_recheck (
    part_id    number(10) not null,
    due_at     timestamp(6) not null,
    recheck_id number(19) not null,
    group_key  raw(800) not null,
    is_hint    number(1) default 0 not null,
    constraint rowq_recheck_pk primary key (part_id, due_at, recheck_id),
    constraint rowq_recheck_is_hint_ck check (is_hint in (0, 1))
)
organization index initrans 16
/
