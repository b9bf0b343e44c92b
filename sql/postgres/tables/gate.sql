-- A row is the right to take messages of a queue that has limits: a dequeue locks it before it
-- counts what is leased. It is never updated, so that there are no dead rows, however long an old
-- snapshot is kept. To enqueue it says that the queue is still there, so that the statement which
-- adds a message reads the tables of one part only, and not queue.
create table if not exists rowq.gate (
    part_id integer not null,
    constraint gate_pk primary key (part_id)
);
