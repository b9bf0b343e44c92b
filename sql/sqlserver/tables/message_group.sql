-- A row is a token: the right of one message of a group to be ready, leased or delayed for a retry.
-- It does not say whose it is: whoever finishes a message of the group passes one on or gives it
-- back, in the transaction that ends the message. Rows are inserted, locked and deleted, never
-- updated. group_key is the bytes of the key and a dot (see queue.sql).
-- A producer whose message is to wait in the group holds all tokens shared (S) to the end of its
-- transaction. Whoever takes a message out of the table grouped, to make it ready or to withdraw
-- it, holds one token by an update lock (U), which goes together with S and not with another U.
-- Whoever gives a token back holds all of them exclusively (X), so that nobody is coming and nobody
-- has taken a message out that a rollback would put back. U and X are only tried (readpast). A call
-- in the caller's transaction never takes X, so that a producer never waits for such a transaction,
-- unless it has opened the group.
-- With ignore_dup_key, an insert of a number that exists inserts no row and raises no error that
-- would doom a transaction; where the other insert is not committed, this one waits for it first.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.message_group') is null
create table rowq.message_group (
    part_id   int not null,
    group_key varbinary(802) not null,
    token_no  smallint not null,
    constraint message_group_pk primary key clustered (part_id, group_key, token_no)
        with (ignore_dup_key = on, allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.message_group set (lock_escalation = disable);
go
