-- A row is what the producer handed over. It is written once and deleted once; only a failure that
-- another attempt follows updates last_error and due_at, reset gives last_error back, and the first
-- message that waits for it sets has_successors. The error of a dead message is in dead.
-- enqueued_at finds a message that was never given back, because its seq in ready is the same
-- moment in microseconds. due_at is the last place that the message had in delayed.
create table if not exists rowq.message (
    message_id     bigint not null auto_increment comment 'The message.',
    part_id        int not null comment 'The queue; never used again for another one.',
    max_attempts   smallint null comment 'Leases before a message is dead; of a message: null for the queue''s setting.',
    enqueued_at    datetime(6) not null comment 'When the producer handed it over.',
    due_at         datetime(6) null comment 'When a delayed message becomes ready.',
    message_type   varchar(200) null comment 'The producer''s label.',
    dedup_key      varbinary(800) null comment 'The producer''s dedup key.',
    headers        json null comment 'The producer''s headers.',
    body           longtext null comment 'Text body, or null.',
    body_binary    longblob null comment 'Binary body, or null.',
    last_error     varchar(2000) null comment 'What went wrong last, or null.',
    group_key      varbinary(800) null comment 'The producer''s group key.',
    has_successors boolean null comment 'Whether a message has waited for this one; null for no.',
    expires_at     datetime(6) null comment 'When maintain withdraws the message unless it has ended, or null.',
    primary key (message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'What the producers handed over: written once, deleted once.'
stats_persistent = 1 stats_auto_recalc = 0;
