-- A row holds the settings of a queue. part_id stands for the queue in the tables below and is
-- never reused. The name is bytes, so that upper case, accents and trailing blanks matter. All
-- times are UTC.
create table if not exists rowq.queue (
    part_id              int not null auto_increment,
    queue_name           varbinary(400) not null,
    lease_seconds        int not null default 30,
    max_attempts         smallint not null default 10,
    backoff_base_seconds double not null default 5,
    backoff_factor       double not null default 2,
    backoff_cap_seconds  double not null default 3600,
    backoff_jitter       double not null default 0.2,
    archive_days         int not null default 0,
    max_body_length      int not null default 1048576,
    paused_at            datetime(6) null,
    created_at           datetime(6) not null,
    primary key (part_id),
    unique key queue_name_uq (queue_name),
    constraint queue_lease_seconds_ck check (lease_seconds between 1 and 86400),
    constraint queue_max_attempts_ck check (max_attempts between 1 and 10000),
    constraint queue_backoff_base_seconds_ck check (backoff_base_seconds between 0 and 86400),
    constraint queue_backoff_factor_ck check (backoff_factor between 1 and 10),
    constraint queue_backoff_cap_seconds_ck check (backoff_cap_seconds between 0 and 31536000),
    constraint queue_backoff_jitter_ck check (backoff_jitter between 0 and 1),
    constraint queue_archive_days_ck check (archive_days between 0 and 36500),
    constraint queue_max_body_length_ck check (max_body_length between 1 and 33554432)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Queues and their settings.';
