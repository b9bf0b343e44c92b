-- A row is one successful dequeue: the messages of the batch under one lease. Where their ids
-- follow each other in the order of delivery, and lane and attempt are the same, the row has
-- first_id and last_id, and messages is null; that is a quarter of the work for a batch of 100. Any
-- other batch is a JSON array of arrays that begin with message_id, lane and attempt, and the four
-- columns are null or count for nothing. A table of leased messages was as fast (batch 100 and 10,
-- measured), but REPEATABLE READ locks its ranges with their gaps, and every dequeue inserts at its
-- end; a lock on one row by its whole key covers no gap. A heartbeat updates lease_until, which is
-- in no index. claim_id is uuid_short without the bits above 2^53, which some languages round away:
-- auto_increment would ask for a second key. It grows in the order of time on one server. is_keyed
-- is false where no message has a key. A part begins with two fence rows (claim_id -2 and
-- -1): a scan that passes the end of the part before stops there, and not after all dead rows. So
-- readers say "claim_id > 0". cancel_ids is a JSON array of ids, null but where messages were
-- cancelled while the worker had them. progress is null until a heartbeat says it.
create table if not exists rowq.claim (
    part_id     int not null comment 'The queue; never used again for another one.',
    claim_id    bigint not null comment 'The claim that holds the lease; pass it to the finishing routines.',
    lease_until datetime(6) not null comment 'When the lease runs out.',
    worker_name varchar(200) null comment 'Who holds the lease.',
    leased_at   datetime(6) not null default '1970-01-01 00:00:00' comment 'When the dequeue leased the message.',
    is_keyed    boolean not null default true comment 'Whether a message may have a key, dedup or group; false where it is known that none has.',
    lane        smallint null comment 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.',
    attempt     smallint null comment 'How many times the message has been leased.',
    first_id    bigint null comment 'First message of a batch whose ids follow each other; null for any other.',
    last_id     bigint null comment 'Last message of a batch whose ids follow each other; null for any other.',
    messages    longtext null comment 'The batch as arrays of message_id, lane and attempt, as JSON; null where first_id to last_id say it.',
    cancel_ids  longtext null comment 'Messages of the batch that were cancelled while the worker had them; null where there is none.',
    progress    varchar(2000) null comment 'How far the work is, as the worker said last.',
    primary key (part_id, claim_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'One successful dequeue each: the lease of a batch.'
stats_persistent = 1 stats_auto_recalc = 0;
