set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.PauseQueue
    @queue_name nvarchar(max)
as
begin
-- routine   PauseQueue
-- version   1
-- purpose   Stop the delivery of a queue; producers and finishing calls continue.
-- promise   P18
-- locks     the queue row
-- commits   never; one statement, in its own transaction if the caller has none
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    declare @begun int, @queue_id int;

    begin try
        -- With implicit_transactions, begin the caller's transaction at its isolation level.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @queue_id output;

        update q
        set paused_at = coalesce(q.paused_at, sysutcdatetime())
        from rowq.queue q with (rowlock, forceseek)
        where q.queue_id = @queue_id;
        if @@rowcount = 0
            exec rowq.InternalRefuseQueue @queue_name;

        select cast(@queue_name as nvarchar(200)) as queue_name, N'paused' as outcome;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go
