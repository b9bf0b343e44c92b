-- A row is the dedup key of an unfinished message, compared byte by byte. The byte FF, which no
-- text of UTF-8 has, before a key says that the message has ended or died, and that another
-- transaction had locked the row of the key. maintain deletes both, or the next message with that
-- key does. The row format is named, because others, which may be the server's default, take no key
-- of more than 767 bytes.
create table if not exists rowq.dedup (
    part_id    int not null comment 'The queue; never used again for another one.',
    dedup_key  varbinary(801) not null comment 'The producer''s dedup key.',
    message_id bigint not null comment 'The message.',
    primary key (part_id, dedup_key)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Dedup keys of unfinished messages.'
row_format = dynamic stats_persistent = 1 stats_auto_recalc = 0;
