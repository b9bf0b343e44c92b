-- A row is what the producer handed over. It is written once and deleted once; only a failure
-- updates last_error and due_at. enqueued_at finds a message that was never given back, because its
-- seq in ready is the same moment in microseconds. due_at is the last place that the message had in
-- delayed.
create table if not exists rowq.message (
    message_id   bigint not null auto_increment,
    part_id      int not null,
    max_attempts smallint null,
    enqueued_at  datetime(6) not null,
    due_at       datetime(6) null,
    message_type varchar(200) null,
    dedup_key    varbinary(800) null,
    headers      json null,
    body         longtext null,
    body_binary  longblob null,
    last_error   varchar(2000) null,
    primary key (message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'What the producers handed over: written once, deleted once.'
stats_persistent = 1 stats_auto_recalc = 0;
