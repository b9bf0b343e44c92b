set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.ResumeQueue
    @queue_name nvarchar(max)
as
begin
-- routine   ResumeQueue
-- version   1
-- purpose   Start delivery again.
-- promise   P18
-- locks     the queue row
-- commits   never; one statement, a transaction of its own where the caller has none
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    declare @begun nvarchar(100);
    declare @part_id int;

    begin try
        -- Where this begins the caller's transaction, it does so at the caller's isolation level.
        select @begun = m.value from rowq.meta m where m.name = N'schema_version';
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @part_id output;

        update q
        set paused_at = null
        from rowq.queue q with (rowlock)
        where q.part_id = @part_id;
        if @@rowcount = 0
            exec rowq.InternalRefuseQueue @queue_name;

        select cast(@queue_name as nvarchar(200)) as queue_name, N'resumed' as outcome;
    end try
    begin catch
        throw;
    end catch;
end
go
