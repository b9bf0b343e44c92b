-- A row is an attempt that has ended, in a queue with history_days. It stays until maintain finds
-- it older than these. The table has no partition a day, unlike the archive: every call that
-- finishes messages of such a queue writes here, in the caller's transaction perhaps, and a
-- statement that adds or drops a partition waits for all open ones, with whoever comes later
-- waiting behind it. A part ends in two fence rows (message_id 0), as in delayed, and readers by
-- the primary key select outcome, which is outside of it.
create table if not exists rowq.history (
    part_id     int not null comment 'The queue; never used again for another one.',
    ended_at    datetime(6) not null comment 'When the attempt ended.',
    message_id  bigint not null comment 'The message.',
    attempt     smallint not null comment 'How many times the message has been leased.',
    claim_id    bigint not null comment 'The claim that held the message.',
    worker_name varchar(200) null comment 'Who held the lease.',
    leased_at   datetime(6) not null comment 'When the dequeue leased the message.',
    outcome     varchar(20) not null comment 'completed, retrying, dead, released, lease_expired or cancelled.',
    error       varchar(2000) null comment 'What the worker said went wrong, or that the lease expired; else null.',
    primary key (part_id, ended_at, message_id, claim_id),
    key history_message_ix (part_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Attempts that have ended, kept for the queue''s history_days.'
stats_persistent = 1 stats_auto_recalc = 0;
