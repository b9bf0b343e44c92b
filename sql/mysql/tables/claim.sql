-- A row is one successful dequeue: the messages of the batch under one lease, as a JSON array of
-- arrays that begin with message_id, lane and attempt. A table of leased messages was as fast
-- (batch 100 and 10, measured), but REPEATABLE READ locks its ranges with their gaps, and every
-- dequeue inserts at its end; a lock on one row by its whole key covers no gap. A heartbeat updates
-- lease_until, which is in no index. auto_increment asks for the second key; nothing reads it. A
-- part begins with two fence rows (claim_id -2 and -1): a scan that passes the end of the part
-- before stops there, and not after all dead rows. So readers say "claim_id > 0".
create table if not exists rowq.claim (
    part_id     int not null,
    claim_id    bigint not null auto_increment,
    lease_until datetime(6) not null,
    worker_name varchar(200) null,
    messages    longtext not null,
    primary key (part_id, claim_id),
    key claim_id_ix (claim_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'One successful dequeue each: the lease of a batch.'
stats_persistent = 1 stats_auto_recalc = 0;
