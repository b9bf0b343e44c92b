-- A row says when a dequeue of a queue with a rate_limit has begun deliveries, and how many. It
-- stays until maintain finds it older than rate_seconds. A part begins with two fence rows
-- (claim_id -2 and -1), as in claim. So readers say "claim_id > 0", or name the moment from which
-- on they read.
create table if not exists rowq.started (
    part_id    int not null comment 'The queue; never used again for another one.',
    started_at datetime(6) not null comment 'When the dequeue leased them.',
    claim_id   bigint not null comment 'The claim that holds the lease; pass it to the finishing routines.',
    messages   int not null comment 'How many messages the dequeue leased.',
    primary key (part_id, started_at, claim_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'The deliveries of queues with a rate_limit that began within their rate_seconds: a row each dequeue.'
stats_persistent = 1 stats_auto_recalc = 0;
