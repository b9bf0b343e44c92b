-- A row is a token: the right of one message of a group to be ready, leased or delayed for a retry.
-- It does not say whose it is: whoever finishes a message of the group passes one on or gives it
-- back, in the transaction that ends the message. A producer whose message joins the group locks
-- the rows that nobody holds, so that nobody gives the last one back while a message is coming. It
-- also sets joined_at, so that a serializable transaction, which cannot see the message, cannot
-- lock the row either (ORA-08177). The key is kept as bytes, as in rowq_dedup.
create table rowq_message_group (
    part_id   number(10) not null,
    group_key raw(800) not null,
    token_no  number(3) not null,
    joined_at timestamp(6),
    constraint rowq_message_group_pk primary key (part_id, group_key, token_no)
)
organization index initrans 32
/
