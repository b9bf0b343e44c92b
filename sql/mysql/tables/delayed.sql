-- A row is a message that waits for its time, kept apart so that dequeue does not read it. The
-- primary key is the order in which messages become due. A part ends in two fence rows (message_id
-- 0), as a lane of ready does: due_at 9999-12-31 23:59:59.999998 and .999999. Readers pass over
-- them by "message_id > 0" or by a bound on due_at, and select attempt, as those of ready do.
create table if not exists rowq.delayed (
    part_id    int not null,
    due_at     datetime(6) not null,
    message_id bigint not null,
    lane       smallint not null,
    attempt    smallint not null default 0,
    primary key (part_id, due_at, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages that wait for their time.'
stats_persistent = 1 stats_auto_recalc = 0;
