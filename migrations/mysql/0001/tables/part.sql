-- The door of a queue: one row, never changed. Who adds or moves messages holds it in share mode
-- to the end of the transaction; drop_queue takes it for itself. The row of table queue is not
-- used for this, so that pausing and altering never wait for a producer.
create table if not exists rowq.part (
    part_id int not null,
    primary key (part_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin;
