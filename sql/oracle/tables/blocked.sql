-- A row is a message that waits for others to end, its predecessors, kept apart so that dequeue
-- does not read it. It waits for one of them at a time, the newest that has not ended
-- (predecessor_id, with a row in successor); rest_ids are the others that it may still have to ask
-- for, newest first, as a JSON array. Rows are found by their whole keys; only purge_queue goes
-- from one to the next. The table is a heap with an index, because a row may have a long list.
create table rowq_blocked (
    part_id        number(10) not null,
    message_id     number(19) not null,
    lane           number(2) not null,
    predecessor_id number(19),
    due_at         timestamp(6),
    on_dead        varchar2(20 char),
    group_key      varchar2(200 char),
    rest_ids       clob,
    constraint rowq_blocked_pk primary key (part_id, message_id)
        using index (
            create unique index rowq_blocked_pk on rowq_blocked (part_id, message_id) initrans 32
        )
)
segment creation immediate
initrans 32 pctfree 20
lob (rest_ids) store as securefile rowq_blocked_rest (enable storage in row cache)
/
