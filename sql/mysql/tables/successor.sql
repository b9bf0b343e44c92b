-- A row says which message waits for which other one. Whoever ends a message whose has_successors
-- is true deletes its rows, in the same transaction. Readers name part and predecessor by "=", so
-- that InnoDB stops at their end and walks over no dead rows of others.
create table if not exists rowq.successor (
    part_id        int not null comment 'The queue; never used again for another one.',
    predecessor_id bigint not null comment 'The message that it waits for now; null where that is to be found out.',
    message_id     bigint not null comment 'The message.',
    primary key (part_id, predecessor_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Which message waits for which other one.'
stats_persistent = 1 stats_auto_recalc = 0;
