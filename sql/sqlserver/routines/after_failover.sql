set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.AfterFailover
as
begin
-- routine   AfterFailover
-- version   1
-- purpose   Continue numbers far beyond those that another server may have given out.
-- promise   P08 P46
-- locks     rows, shared while they are read, skipping locked ones; the table queue until the
--           transaction ends, waits up to 1 s
-- commits   never; the caller owns the transaction. A rollback leaves the sequences where they are
-- errors    none
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    declare @begun int, @message_id bigint, @claim_id bigint, @queue_id bigint;
    declare @was_message bigint, @was_claim bigint, @was_queue bigint;

    begin try
        -- With implicit_transactions, begin the caller's transaction at its isolation level.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalStoredNumbers @message_id output, @claim_id output, @queue_id output;
        exec rowq.InternalAdvanceSequence
            N'rowq.message_seq', @message_id, @was_message output, @message_id output;
        exec rowq.InternalAdvanceSequence
            N'rowq.claim_seq', @claim_id, @was_claim output, @claim_id output;
        exec rowq.InternalAdvanceQueueIds @queue_id, @was_queue output, @queue_id output;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;

    select n.name, n.was, n.is_now
    from (
        values
            (N'claim', @was_claim, @claim_id),
            (N'message', @was_message, @message_id),
            (N'queue', @was_queue, @queue_id)
    ) n (name, was, is_now)
    order by n.name;
end
go
