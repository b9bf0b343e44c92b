-- Create the record of installed migrations in yoyo's columns. Times are UTC. A migrating session
-- locks the last table.
create table rowq_migration (
    migration_hash varchar2(64 char) not null,
    migration_id   varchar2(255 char) not null,
    applied_at_utc timestamp(6) not null,
    constraint rowq_migration_pk primary key (migration_hash)
)
segment creation immediate
/
create table rowq_migration_log (
    id             varchar2(36 char) not null,
    migration_hash varchar2(64 char) not null,
    migration_id   varchar2(255 char) not null,
    operation      varchar2(10 char) not null,
    username       varchar2(255 char) not null,
    hostname       varchar2(255 char) not null,
    created_at_utc timestamp(6) not null,
    constraint rowq_migration_log_pk primary key (id)
)
segment creation immediate
/
create table rowq_migration_lock (
    is_locked number(1) not null
)
segment creation immediate
/
