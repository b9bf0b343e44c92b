-- A row is a message that waits for its time, kept apart so that dequeue does not read it. The
-- primary key is the order in which messages become due. A part ends in two fence rows (message_id
-- 0), as a lane of ready does: due_at 9999-12-31 23:59:59.999998 and .999999. Readers pass over
-- them by "message_id > 0" or by a bound on due_at, and select attempt, as those of ready do.
-- group_key is of one that joins its group when it is due; one that is retried has its token, and
-- none here.
create table if not exists rowq.delayed (
    part_id    int not null comment 'The queue; never used again for another one.',
    due_at     datetime(6) not null comment 'When a delayed message becomes ready.',
    message_id bigint not null comment 'The message.',
    lane       smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.',
    attempt    smallint not null default 0 comment 'How many times the message has been leased.',
    group_key  varbinary(800) null comment 'Group that the message joins when it is due; null for one that has its token.',
    primary key (part_id, due_at, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages that wait for their time.'
stats_persistent = 1 stats_auto_recalc = 0;
