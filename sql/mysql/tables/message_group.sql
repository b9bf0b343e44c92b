-- A row is a token: the right of one message of a group to be ready, leased or delayed for a retry.
-- It does not say whose it is: whoever finishes a message of the group passes one on or gives it
-- back, in the transaction that ends the message. Rows are inserted, locked and deleted, never
-- updated. A producer that joins the group locks all of its rows, so that nobody gives the last one
-- back while a message is coming.
create table if not exists rowq.message_group (
    part_id   int not null comment 'The queue; never used again for another one.',
    group_key varbinary(800) not null comment 'The producer''s group key.',
    token_no  smallint not null comment 'Number of the token in its group, from 1.',
    primary key (part_id, group_key, token_no)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Tokens: each is the right of one message of a group to be ready, leased or waiting for a retry.'
row_format = dynamic stats_persistent = 1 stats_auto_recalc = 0;
