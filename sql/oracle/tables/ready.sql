-- A row is a message that waits for a worker, and is never updated. The primary key is the dequeue
-- order, and there is no second index. lane is priority * 2, plus 1 for the tail: a message that is
-- released or reaped goes to the front lane. seq is the moment of entry, in microseconds since 1970
-- UTC, plus the place in its batch: no sequence orders the producers. message_id decides between
-- equal ones. The table is a heap with an index and not index-organized, because the physical rowid
-- deletes what the cursor has locked without a second search. initrans gives many sessions a lock
-- entry of their own in a block from the start, because a full block cannot add one later ("enq: TX
-- - allocate ITL entry"), and pctfree leaves room for more.
create table rowq_ready (
    part_id    number(10) not null,
    lane       number(2) not null,
    seq        number(19) not null,
    message_id number(19) not null,
    attempt    number(5) default 0 not null,
    constraint rowq_ready_pk primary key (part_id, lane, seq, message_id)
        using index (
            create unique index rowq_ready_pk on rowq_ready (part_id, lane, seq, message_id)
            initrans 64 pctfree 10
        ),
    constraint rowq_ready_lane_ck check (lane between 0 and 19)
)
segment creation immediate
initrans 64 pctfree 20
/
