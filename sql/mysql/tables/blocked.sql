-- A row is a message that waits for others to end, its predecessors, kept apart so that dequeue
-- does not read it. It waits for one of them at a time, the newest that has not ended
-- (predecessor_id, with a row in successor); rest_ids are the others that it may still have to ask
-- for, newest first. Rows are found by their whole keys; only purge_queue goes from one to the
-- next.
create table if not exists rowq.blocked (
    part_id        int not null comment 'The queue; never used again for another one.',
    message_id     bigint not null comment 'The message.',
    lane           smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.',
    predecessor_id bigint null comment 'The message that it waits for now; null where that is to be found out.',
    due_at         datetime(6) null comment 'When the message may be delivered, if it has a time of its own.',
    on_dead        varchar(20) null comment 'What a dead predecessor does to the message: hold, continue or fail; null is hold.',
    group_key      varbinary(800) null comment 'The group that it joins when it waits for nothing any more.',
    rest_ids       longtext null comment 'The other messages that it may have to wait for, in order.',
    primary key (part_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages that wait for others to end.'
stats_persistent = 1 stats_auto_recalc = 0;
