-- A row is the right to take messages of a queue that has limits: a dequeue locks it before it
-- counts what is leased. last_claim_id tells a caller's transaction whether its snapshot is older
-- than that, and maintain which claims there have been. Each dequeue that leases updates it, while
-- it holds the row anyway; no index changes, so that there are no dead rows.
create table if not exists rowq.gate (
    part_id       int not null comment 'The queue; never used again for another one.',
    last_claim_id bigint not null default 0 comment 'The newest claim that was made under the queue''s limits.',
    primary key (part_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'One row a queue, which a dequeue of a limited queue locks while it counts and takes.';
