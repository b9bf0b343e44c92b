-- A row is a message that failed for good. It stays until it is reset, cancelled or purged. The
-- reason is here, because its message row may be locked by a producer that has just named it, and
-- whoever declares it dead waits for nobody. holds_group is true where it has kept the token of its
-- group, and else null.
create table if not exists rowq.dead (
    part_id     int not null comment 'The queue; never used again for another one.',
    message_id  bigint not null comment 'The message.',
    lane        smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.',
    attempt     smallint not null comment 'How many times the message has been leased.',
    died_at     datetime(6) not null comment 'When it failed for good.',
    last_error  varchar(2000) null comment 'What went wrong last, or null.',
    holds_group boolean null comment 'Whether the dead message has kept its token, so that its group waits; else null.',
    primary key (part_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages that failed for good, until they are reset, cancelled or purged.';
