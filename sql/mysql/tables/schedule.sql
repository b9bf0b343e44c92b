-- A row is a schedule: maintain adds its message to the queue in the transaction that moves
-- next_run_at on. next_run_at is null while it is paused, and after its last tick. A queue has few
-- schedules, so the due ones are found by reading them all.
create table if not exists rowq.schedule (
    part_id          int not null comment 'The queue; never used again for another one.',
    schedule_name    varbinary(400) not null comment 'Name of the schedule.',
    cron             varchar(200) null comment 'Its times as in a crontab, or null.',
    interval_seconds double null comment 'Seconds between its ticks, or null.',
    time_zone        varchar(64) not null comment 'Whose clocks cron means.',
    missed           varchar(20) not null comment 'What becomes of late ticks: skip, once or all.',
    overlap          boolean not null comment 'Whether a tick makes a message while that of an earlier one has not ended.',
    starts_at        datetime(6) not null comment 'No tick comes before this moment; intervals are counted from it.',
    ends_at          datetime(6) null comment 'No tick comes after this moment, or null.',
    message_type     varchar(200) null comment 'The producer''s label.',
    headers          json null comment 'The producer''s headers.',
    priority         smallint not null comment '0 to 9; 0 is delivered first.',
    group_key        varbinary(800) null comment 'The producer''s group key.',
    max_attempts     smallint null comment 'Leases before a message is dead; of a message: null for the queue''s setting.',
    body             longtext null comment 'Text body, or null.',
    body_binary      longblob null comment 'Binary body, or null.',
    is_paused        boolean not null default false comment 'It is stopped: a queue delivers nothing, a schedule makes no message.',
    next_run_at      datetime(6) null comment 'The next tick; null while the schedule is paused, and after its last one.',
    last_run_at      datetime(6) null comment 'When it last made a message, or null.',
    last_message_id  bigint null comment 'The message that it made then, or null.',
    last_error       varchar(2000) null comment 'What went wrong last, or null.',
    primary key (part_id, schedule_name),
    constraint schedule_cron_ck check ((cron is null) <> (interval_seconds is null)),
    constraint schedule_missed_ck check (missed in ('skip', 'once', 'all'))
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Schedules, whose messages maintain adds to their queues when they are due.'
row_format = dynamic stats_persistent = 1 stats_auto_recalc = 0;
