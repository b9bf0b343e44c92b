-- A row is a message that failed for good. It stays until it is reset, cancelled or purged. The
-- reason is in message.last_error.
create table if not exists rowq.dead (
    part_id    int not null,
    message_id bigint not null,
    lane       smallint not null,
    attempt    smallint not null,
    died_at    datetime(6) not null,
    primary key (part_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages that failed for good, until they are reset, cancelled or purged.';
