-- A row is a message that waits behind others of its group, kept apart so that dequeue does not
-- read it. Those who look into one group name it by "=", so that InnoDB stops at its end. A part
-- ends in two fence rows (message_id 0; group_key FF and FFFF, which no text is), as a lane of
-- ready does, for those who go from group to group. So these say "message_id > 0" or
-- "group_key < x'FF'".
create table if not exists rowq.grouped (
    part_id    int not null comment 'The queue; never used again for another one.',
    group_key  varbinary(800) not null comment 'The producer''s group key.',
    message_id bigint not null comment 'The message.',
    lane       smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.',
    primary key (part_id, group_key, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages that wait behind others of their groups.'
row_format = dynamic stats_persistent = 1 stats_auto_recalc = 0;
