-- Create the record of installed migrations in yoyo's columns, and the name of the migration lock.
-- Times are UTC.
create database if not exists rowq character set utf8mb4 collate utf8mb4_bin;

create table if not exists rowq.migration (
    migration_hash varchar(64) not null,
    migration_id   varchar(255) not null,
    applied_at_utc datetime(6) not null,
    primary key (migration_hash)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin;

create table if not exists rowq.migration_log (
    id             varchar(36) not null,
    migration_hash varchar(64) not null,
    migration_id   varchar(255) not null,
    operation      varchar(10) not null,
    username       varchar(255) not null,
    hostname       varchar(255) not null,
    created_at_utc datetime(6) not null,
    primary key (id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin;

-- Any session may take a lock by name, so only accounts that can read this table know the name.
create table if not exists rowq.migration_lock (
    id        int not null,
    lock_name varchar(64) not null,
    primary key (id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin;
insert ignore into rowq.migration_lock (id, lock_name)
values (
    1,
    concat('rowq.migrate.', left(sha2(concat(uuid(), rand(), rand(), utc_timestamp(6)), 256), 40))
);
