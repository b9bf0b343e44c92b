-- A row is a batch of finished messages of a queue that keeps an archive, as a JSON array like that
-- of a claim. It stays until the archive routine has moved the messages. A part begins with two
-- fence rows (finish_id -2 and -1), as in claim. So readers say "finish_id > 0".
create table if not exists rowq.finished (
    part_id     int not null comment 'The queue; never used again for another one.',
    finish_id   bigint not null auto_increment comment 'The call that finished the messages; the archive goes in this order.',
    finished_at datetime(6) not null comment 'When it was completed, cancelled, expired or declared dead.',
    state       varchar(20) not null comment 'completed, cancelled or expired.',
    messages    longtext not null comment 'The batch as arrays of message_id, lane and attempt, as JSON.',
    primary key (part_id, finish_id),
    key finish_id_ix (finish_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Finished messages of queues that keep an archive, until archive moves them there.'
stats_persistent = 1 stats_auto_recalc = 0;
