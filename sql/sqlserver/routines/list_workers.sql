set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.ListWorkers
    @queue_name nvarchar(max) = null
as
begin
-- routine   ListWorkers
-- version   1
-- purpose   List workers that reported within the last hour, idle ones included.
-- promise   none
-- locks     rows, shared while they are read, skipping locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   a worker that is reporting now is left out
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    declare @begun int;
    declare @queue_id int;

    begin try
        -- Under implicit_transactions this read begins the caller's transaction, at the caller's
        -- isolation level. @begun keeps the value out of the results.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        if @queue_name is not null
            exec rowq.InternalRequireQueue @queue_name, @queue_id output;

        select q.queue_name, w.worker_id, w.worker_name, w.host_name, w.worker_version, w.threads,
               w.started_at, w.last_seen_at,
               datediff_big(microsecond, w.last_seen_at, sysutcdatetime()) / 1e6
                   as last_seen_seconds,
               w.completed, w.failed, w.completed_per_second, w.failed_per_second
        from rowq.queue q
        inner join rowq.worker w with (rowlock, readpast, readcommittedlock)
            on w.queue_id = q.queue_id
        where (@queue_id is null or q.queue_id = @queue_id)
          and w.last_seen_at > dateadd(hour, -1, sysutcdatetime())
        order by q.queue_name, w.worker_id
        option (loop join, maxdop 1, recompile);
    end try
    begin catch
        -- With xact_abort off, an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go
