-- A row is the dedup key of an unfinished message.
create table if not exists rowq.dedup (
    part_id    integer not null,
    message_id bigint not null,
    dedup_key  text not null,
    constraint dedup_pk primary key (part_id, dedup_key)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);
