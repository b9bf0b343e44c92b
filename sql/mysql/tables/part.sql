-- A row stands for one queue and never changes. A call that adds or moves messages locks it in
-- share mode to the end of its transaction, and drop_queue locks it exclusively. The row of table
-- queue is not used for this, so that pausing and altering a queue never wait for a producer.
create table if not exists rowq.part (
    part_id int not null comment 'The queue; never used again for another one.',
    primary key (part_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'One row a queue, which is locked while messages are added or moved, and never changes.';
