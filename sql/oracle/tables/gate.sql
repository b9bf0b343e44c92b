-- A row is the right to take messages of a queue that has limits: a dequeue locks it before it
-- counts what is leased, and sets taken_at, so that a serializable transaction that began before
-- cannot lock it (ORA-08177): it could not see what was leased since. Dequeues of a queue without
-- limits do not touch it.
create table rowq_gate (
    part_id  number(10) not null,
    taken_at timestamp(6),
    constraint rowq_gate_pk primary key (part_id)
)
organization index initrans 16 pctfree 40
/
