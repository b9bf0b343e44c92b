set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.ListSchedules
    @queue_name nvarchar(max) = null
as
begin
-- routine   ListSchedules
-- version   1
-- purpose   List the schedules of one queue or all, without bodies and headers.
-- promise   none
-- locks     rows, shared while they are read; none with row versions
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
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

        select q.queue_name, s.schedule_name, s.cron, s.interval_seconds, s.time_zone, s.is_paused,
               s.next_run_at, s.last_run_at, s.last_message_id, s.last_error, s.missed, s.overlap,
               s.starts_at, s.ends_at, s.message_type, cast(s.priority as int) as priority,
               cast(s.max_attempts as int) as max_attempts, s.group_key, s.counts_from
        from rowq.queue q
        inner join rowq.schedule s on s.queue_id = q.queue_id
        where @queue_id is null
           or q.queue_id = @queue_id
        order by q.queue_name, s.schedule_name
        option (loop join, maxdop 1, recompile);
    end try
    begin catch
        -- With xact_abort off, an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go
