-- A row is a finished message. There is one partition a day (pYYYYMMDD, UTC), which is dropped when
-- no queue needs it. The last partition takes every later day, so that a row always finds its
-- place; maintain splits days off it.
create table if not exists rowq.archive (
    part_id      int not null,
    finished_at  datetime(6) not null,
    message_id   bigint not null,
    lane         smallint not null,
    attempt      smallint not null,
    enqueued_at  datetime(6) not null,
    state        varchar(20) not null,
    message_type varchar(200) null,
    dedup_key    varbinary(800) null,
    headers      json null,
    body         longtext null,
    body_binary  longblob null,
    primary key (part_id, finished_at, message_id),
    key archive_message_ix (part_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Finished messages, kept for the queue''s archive_days.'
partition by range columns (finished_at) (
    partition plater values less than (maxvalue)
);
