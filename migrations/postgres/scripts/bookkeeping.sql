-- Create the record of installed migrations in yoyo's columns. Times are UTC. Of two concurrent
-- first migrations, one waits here for the other and then fails, because the new schema must pass
-- preflight.sql first.
set local lock_timeout = '60s';

do $$
begin
    if pg_catalog.current_setting('rowq.has_schema') = 'no' then
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

lock table rowq.migration in share row exclusive mode;

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

set local lock_timeout = '10s';
