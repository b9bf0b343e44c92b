-- A row says how a message has ended, in a queue with result_seconds. It stays until maintain finds
-- it older than these, or the message, which is dead, is reset. Rows are locked by the primary key
-- only; maintain reads the other index without a lock. A part ends there in two fence rows
-- (message_id below 1), as in delayed, and readers of that index select state, which is outside of
-- it.
create table if not exists rowq.result (
    part_id     int not null comment 'The queue; never used again for another one.',
    message_id  bigint not null comment 'The message.',
    finished_at datetime(6) not null comment 'When it was completed, cancelled, expired or declared dead.',
    state       varchar(20) not null comment 'completed, cancelled, expired or dead.',
    result      json null comment 'What complete was given for the message, or null.',
    last_error  varchar(2000) null comment 'What went wrong last, or null.',
    primary key (part_id, message_id),
    key result_finished_ix (part_id, finished_at)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'How messages have ended, with their results, kept for the queue''s result_seconds.'
stats_persistent = 1 stats_auto_recalc = 0;
