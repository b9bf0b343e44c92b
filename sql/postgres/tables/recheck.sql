-- A row is something that has to be looked at again, because another transaction held what was
-- looked at, or because there was too much of it. With a group_key it is a token that its last
-- owner could not pass on, or whose group rests; is_hint says that there is no token yet: the
-- group's limit was raised, and there may be one to take. With a message_id it is a blocked message
-- that waits for nothing any more, perhaps. With a predecessor_id it is a message that has ended,
-- of which not all successors were freed; is_hint says that it is dead. With the same id as both it
-- is a message that has ended, and whose row another transaction had locked. maintain looks at what
-- is due, and so does a dequeue that finds nothing.
create table if not exists rowq.recheck (
    part_id        integer not null,
    is_hint        boolean not null default false,
    due_at         timestamp with time zone not null,
    recheck_id     bigint not null default nextval('rowq.claim_seq'),
    message_id     bigint,
    predecessor_id bigint,
    group_key      text,
    constraint recheck_pk primary key (part_id, due_at, recheck_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0
);
