-- A row is a message that waits behind others of its group, kept apart so that dequeue does not
-- read it.
create table if not exists rowq.grouped (
    part_id    integer not null,
    lane       smallint not null,
    message_id bigint not null,
    group_key  text not null,
    last_error text,
    constraint grouped_pk primary key (part_id, group_key, message_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);
