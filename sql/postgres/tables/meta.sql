-- The rows say what is installed: schema_version and rowq_version.
create table if not exists rowq.meta (
    name       text not null,
    value      text not null,
    changed_at timestamp with time zone not null default clock_timestamp(),
    constraint meta_pk primary key (name)
);

insert into rowq.meta (name, value)
values ('schema_version', '1'), ('rowq_version', '0.1.0')
on conflict (name) do update set value = excluded.value, changed_at = excluded.changed_at;
