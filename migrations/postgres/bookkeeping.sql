-- Which migrations are installed, in the columns that yoyo knows. Times are UTC.
-- Not "if not exists": that asks for the right to create schemas even where there is nothing to do.
do $$
begin
    if to_regnamespace('rowq') is null then
        create schema rowq;
        comment on schema rowq is 'rowq message queue';
    end if;
end;
$$;

create table if not exists rowq.migration (
    migration_hash text not null,
    migration_id   text not null,
    applied_at_utc timestamp without time zone not null,
    constraint migration_pk primary key (migration_hash)
);

create table if not exists rowq.migration_log (
    id             text not null,
    migration_hash text not null,
    migration_id   text not null,
    operation      text not null,
    username       text not null,
    hostname       text not null,
    created_at_utc timestamp without time zone not null,
    constraint migration_log_pk primary key (id)
);
