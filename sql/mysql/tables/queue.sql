-- A row holds the settings of a queue. part_id stands for the queue in the tables below and is
-- never reused. The name is bytes, so that upper case, accents and trailing blanks matter. All
-- times are UTC.
create table if not exists rowq.queue (
    part_id              int not null auto_increment comment 'The queue; never used again for another one.',
    queue_name           varbinary(400) not null comment 'Name of the queue.',
    lease_seconds        int not null default 30 comment 'Setting: default lease.',
    max_attempts         smallint not null default 10 comment 'Leases before a message is dead; of a message: null for the queue''s setting.',
    backoff_base_seconds double not null default 5 comment 'Setting: delay before the second attempt.',
    backoff_factor       double not null default 2 comment 'Setting: growth of the delay.',
    backoff_cap_seconds  double not null default 3600 comment 'Setting: longest delay.',
    backoff_jitter       double not null default 0.2 comment 'Setting: random share taken off a delay.',
    archive_days         int not null default 0 comment 'Setting: days in the archive.',
    max_body_length      int not null default 1048576 comment 'Setting: longest body.',
    group_limit          smallint not null default 1 comment 'Setting: messages of one group in work at once.',
    group_after_dead     varchar(20) not null default 'continue' comment 'Setting: continue or hold.',
    group_pause_seconds  double not null default 0 comment 'Setting: rest of a group between two messages.',
    paused_at            datetime(6) null comment 'Since when dequeue is stopped; null while it is not.',
    created_at           datetime(6) not null comment 'When the queue was created.',
    primary key (part_id),
    unique key queue_name_uq (queue_name),
    constraint queue_lease_seconds_ck check (lease_seconds between 1 and 86400),
    constraint queue_max_attempts_ck check (max_attempts between 1 and 10000),
    constraint queue_backoff_base_seconds_ck check (backoff_base_seconds between 0 and 86400),
    constraint queue_backoff_factor_ck check (backoff_factor between 1 and 10),
    constraint queue_backoff_cap_seconds_ck check (backoff_cap_seconds between 0 and 31536000),
    constraint queue_backoff_jitter_ck check (backoff_jitter between 0 and 1),
    constraint queue_archive_days_ck check (archive_days between 0 and 36500),
    constraint queue_max_body_length_ck check (max_body_length between 1 and 33554432),
    constraint queue_group_limit_ck check (group_limit between 1 and 100),
    constraint queue_group_after_dead_ck check (group_after_dead in ('continue', 'hold')),
    constraint queue_group_pause_seconds_ck check (group_pause_seconds between 0 and 86400)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Queues and their settings.';
