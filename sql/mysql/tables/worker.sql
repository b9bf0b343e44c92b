-- A row is a worker process that has reported. It is deleted when the worker ends; one that was
-- killed is deleted an hour after its last report, by the report of another worker of the queue.
-- The rates are those between the last two reports.
create table if not exists rowq.worker (
    part_id              int not null comment 'The queue; never used again for another one.',
    worker_id            varbinary(64) not null comment 'The worker process.',
    worker_name          varchar(200) null comment 'Who holds the lease, or has held it.',
    host_name            varchar(200) null comment 'Where the worker runs, or null.',
    worker_version       varchar(200) null comment 'What the worker runs, or null.',
    threads              int not null comment 'How many handlers the worker runs at a time.',
    started_at           datetime(6) not null comment 'When the worker reported first.',
    last_seen_at         datetime(6) not null comment 'When the worker reported last.',
    completed            bigint not null comment 'Messages that the worker has completed since its start.',
    failed               bigint not null comment 'Attempts that have failed in the worker since its start.',
    completed_per_second double not null default 0 comment 'Messages completed a second, between the worker''s last two reports.',
    failed_per_second    double not null default 0 comment 'Attempts failed a second, between the worker''s last two reports.',
    primary key (part_id, worker_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Worker processes that have reported, and how much they do.'
stats_persistent = 1 stats_auto_recalc = 0;
