-- The rows say what is installed: schema_version and rowq_version, which each migration writes. For
-- a queue for which maintain has failed, maintain_fault.<part_id> is the error.
create table if not exists rowq.meta (
    name       varchar(100) not null comment 'What the value is of.',
    value      varchar(500) not null comment 'The value.',
    changed_at datetime(6) not null default current_timestamp(6) comment 'When the value was set.',
    primary key (name)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'What is installed: schema_version and rowq_version.';
