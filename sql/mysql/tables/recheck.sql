-- A row is something that has to be looked at again, because another transaction held what was
-- looked at, or because there was too much of it. With a group_key it is a token that its last
-- owner could not pass on, or whose group rests; is_hint says that there is no token yet: the
-- group's limit was raised, and there may be one to take. With a message_id it is a blocked message
-- that waits for nothing any more, perhaps. With a predecessor_id it is a message that has ended,
-- of which not all successors were freed; is_hint says that it is dead. With the same id as both it
-- is a message that has ended, and whose row another transaction had locked; with none of the three
-- it says that dedup has keys to delete. maintain looks at what is due, and so does a dequeue that
-- finds nothing. A part ends in two fence rows (recheck_id 0), as in delayed, and readers select
-- is_hint, as those of delayed do attempt.
create table if not exists rowq.recheck (
    part_id        int not null comment 'The queue; never used again for another one.',
    due_at         datetime(6) not null comment 'Maintain looks at it from this moment on.',
    recheck_id     bigint not null comment 'Makes the key unique.',
    message_id     bigint null comment 'A blocked message that may wait for nothing any more.',
    predecessor_id bigint null comment 'A message that has ended, of which not all successors were freed.',
    group_key      varbinary(800) null comment 'The group that the token is of; null where it is no token.',
    is_hint        boolean not null default false comment 'Whether there is no token yet, but may be one to take; of a predecessor: whether it is dead.',
    primary key (part_id, due_at, recheck_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'What could not be passed on at once, because others were at work on it: tokens of groups, messages that waited for others; maintain looks at it again.'
stats_persistent = 1 stats_auto_recalc = 0;
