-- A row says which message waits for which other one; on_dead is that of blocked. The one that ends
-- a message deletes its rows, in the same transaction. Who names a message as a predecessor holds
-- its row of message shared (S) to the end of the transaction, and only then adds a row here. A
-- call that ends that message, or makes it dead, locks its row exclusively (X) before it looks
-- here. So it sees every row of producers that came before it, and those that come after it see its
-- end. Where it cannot lock the row, maintain looks here once more. The row of message itself is
-- not changed for this: without row versions its readers, every dequeue among them, would wait for
-- the producer.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.successor') is null
create table rowq.successor (
    part_id        int not null,
    predecessor_id bigint not null,
    message_id     bigint not null,
    on_dead        nvarchar(20) collate Latin1_General_100_BIN2 null,
    constraint successor_pk primary key clustered (part_id, predecessor_id, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.successor set (lock_escalation = disable);
go
