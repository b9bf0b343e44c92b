-- The rows say what is installed: schema_version and rowq_version. Each migration writes them.
create table if not exists rowq.meta (
    name       text not null,
    value      text not null,
    changed_at timestamp with time zone not null default clock_timestamp(),
    constraint meta_pk primary key (name)
);
