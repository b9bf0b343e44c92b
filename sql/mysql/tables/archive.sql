-- A row is a finished message. There is one partition a day (pYYYYMMDD, UTC), which is dropped when
-- no queue needs it. The last partition takes every later day, so that a row always finds its
-- place; maintain splits days off it.
create table if not exists rowq.archive (
    part_id      int not null comment 'The queue; never used again for another one.',
    finished_at  datetime(6) not null comment 'When it was completed, cancelled, expired or declared dead.',
    message_id   bigint not null comment 'The message.',
    lane         smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.',
    attempt      smallint not null comment 'How many times the message has been leased.',
    enqueued_at  datetime(6) not null comment 'When the producer handed it over.',
    state        varchar(20) not null comment 'completed, cancelled or expired.',
    message_type varchar(200) null comment 'The producer''s label.',
    dedup_key    varbinary(800) null comment 'The producer''s dedup key.',
    headers      json null comment 'The producer''s headers.',
    body         longtext null comment 'Text body, or null.',
    body_binary  longblob null comment 'Binary body, or null.',
    group_key    varbinary(800) null comment 'The producer''s group key.',
    primary key (part_id, finished_at, message_id),
    key archive_message_ix (part_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Finished messages, kept for the queue''s archive_days.'
partition by range columns (finished_at) (
    partition plater values less than (maxvalue)
);
