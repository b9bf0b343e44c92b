-- A row is something that has to be looked at again, because another transaction held what was
-- looked at, or because there was too much of it. With a group_key it is a token that its last
-- owner could not pass on, or whose group rests; is_hint says that there may be no token: a message
-- waits whose producer could lock no token of the group, or the group's limit was raised. With a
-- message_id it is a blocked message that waits for nothing any more, perhaps. With a
-- predecessor_id it is a message that has ended, of which not all successors were freed; is_hint
-- says that it is dead. With the same id as both it is a message that has ended, and whose row
-- another transaction had locked. maintain looks at what is due, and a dequeue that finds nothing
-- looks at the groups among it, once lane -4 is open.
create table rowq_recheck (
    part_id        number(10) not null,
    due_at         timestamp(6) not null,
    recheck_id     number(19) not null,
    group_key      raw(800),
    is_hint        number(1) default 0 not null,
    message_id     number(19),
    predecessor_id number(19),
    constraint rowq_recheck_pk primary key (part_id, due_at, recheck_id),
    constraint rowq_recheck_is_hint_ck check (is_hint in (0, 1))
)
organization index initrans 32
/
