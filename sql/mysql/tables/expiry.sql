-- A row says when maintain looks whether a message has expired, and where it is if it is ready
-- then. Who adds a message adds one, and so does who makes it ready under a new number or gives it
-- back: maintain can forget a row whose message it does not find. A row stays until its moment,
-- also where the message has ended before. So that is no later than a day, and maintain puts it off
-- for another day until the message expires. A part ends in two fence rows (expiry_id 0), as in
-- delayed, and readers select message_id, which is outside of the key.
create table if not exists rowq.expiry (
    part_id    int not null comment 'The queue; never used again for another one.',
    expires_at datetime(6) not null comment 'Maintain looks for the message from this moment on.',
    expiry_id  bigint not null comment 'Makes the key unique.',
    message_id bigint not null comment 'The message.',
    lane       smallint null comment 'Lane in which the message is if it is ready.',
    seq        bigint null comment 'Its place there; null where the row was written for another place.',
    primary key (part_id, expires_at, expiry_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'When messages expire: what is due is withdrawn by maintain, or has ended before.'
stats_persistent = 1 stats_auto_recalc = 0;
