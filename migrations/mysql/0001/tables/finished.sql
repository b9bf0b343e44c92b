-- Finished messages of queues that keep an archive, until the archive routine has moved them. A row
-- holds a batch, as a claim does: a JSON array of [message_id, lane, attempt]. Two fence rows begin
-- each part (finish_id -2 and -1). Readers say "finish_id > 0".
create table if not exists rowq.finished (
    part_id     int not null,
    finish_id   bigint not null auto_increment,
    finished_at datetime(6) not null,
    state       varchar(20) not null,
    messages    longtext not null,
    primary key (part_id, finish_id),
    key finish_id_ix (finish_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
stats_persistent = 1 stats_auto_recalc = 0;
