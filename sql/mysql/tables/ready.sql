-- A row is a message that waits for a worker. The primary key is the dequeue order, and there is no
-- second index. lane is priority * 2, plus 1 for the tail: a message that is released or reaped
-- goes to the front lane. seq is the moment of entry, in microseconds since 1970 UTC, plus the
-- place in its batch, so that producers share no number generator; message_id decides between equal
-- ones. Each lane ends in two fence rows (message_id 0; seq 2^63 - 2 and 2^63 - 1), because InnoDB
-- compares the end of a range with live rows only: without them a scan would walk the dead rows of
-- the next lane. Every reader of a lane says "force index (primary)" and "seq <
-- 9223372036854775806", and selects attempt, because a covering plan would drop the range and
-- ignore the floor. Nothing but drop_queue deletes fence rows. is_keyed is false for a message that
-- is known to have no key; one that was given back or has waited for its time counts as one
-- that may have.
create table if not exists rowq.ready (
    part_id    int not null comment 'The queue; never used again for another one.',
    lane       smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.',
    seq        bigint not null comment 'Place in the lane; it only grows.',
    message_id bigint not null comment 'The message.',
    attempt    smallint not null default 0 comment 'How many times the message has been leased.',
    is_keyed   boolean not null default true comment 'Whether a message may have a key, dedup or group; false where it is known that none has.',
    primary key (part_id, lane, seq, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages that wait for a worker; the primary key is the order of delivery.'
stats_persistent = 1 stats_auto_recalc = 0;
