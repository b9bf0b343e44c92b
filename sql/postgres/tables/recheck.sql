-- A row is a token that its last owner could not pass on, because another transaction held what it
-- looked at, or because the group rests. is_hint says that there is no token yet: the group's limit
-- was raised, and there may be one to take. maintain looks at what is due, and so does a dequeue
-- that finds nothing.
create table if not exists rowq.recheck (
    part_id    integer not null,
    is_hint    boolean not null default false,
    due_at     timestamp with time zone not null,
    recheck_id bigint not null default nextval('rowq.claim_seq'),
    group_key  text not null,
    constraint recheck_pk primary key (part_id, due_at, recheck_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0
);
