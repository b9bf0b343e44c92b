set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.ReportWorker
    @queue_name nvarchar(max),
    @worker_id nvarchar(max),
    @worker_name nvarchar(max) = null,
    @host_name nvarchar(max) = null,
    @worker_version nvarchar(max) = null,
    @threads int = 1,
    @completed bigint = 0,
    @failed bigint = 0,
    @is_ended bit = 0
as
begin
-- routine   ReportWorker
-- version   1
-- purpose   Report that a worker runs, with its totals; call it about every 10 seconds.
-- promise   P15
-- locks     the queue, shared; the worker's row; the row of one gone worker, skipping locked ones
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @queue_id int;
    declare @id nvarchar(64);
    declare @gone nvarchar(64);
    declare @now datetime2(6);
    -- The collation counts an emoji as one character; the dot keeps trailing blanks.
    declare @longest int = (
        select max(len((t.text + N'.') collate Latin1_General_100_CI_AS_SC) - 1)
        from (values (@worker_name), (@host_name), (@worker_version)) t (text)
    );

    -- With xact_abort on, a refusal would make the caller's transaction uncommittable.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction, at the
            -- caller's isolation level. @begun keeps the value out of the results.
            if @owns_transaction = 0
                select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
            set transaction isolation level read committed;

            if @worker_id is null
                or datalength(@worker_id) not between 2 and 128
                or @worker_id collate Latin1_General_100_BIN2 like N'%[^A-Za-z0-9_.:-]%'
                exec rowq.InternalRefuse
                    N'worker_id must be 1 to 64 letters, digits, -, _, . or :';
            if @longest > 200
                exec rowq.InternalRefuse
                    N'worker_name, host_name and worker_version must be at most 200 characters';
            exec rowq.InternalCheckRange N'threads', @threads, 1, 100000;
            exec rowq.InternalCheckRange N'completed', @completed, 0, 9007199254740992;
            exec rowq.InternalCheckRange N'failed', @failed, 0, 9007199254740992;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue @queue_name, @queue_id output;
            set @id = @worker_id;
            set @now = sysutcdatetime();

            -- Writes start here. If the client disconnects, xact_abort rolls back the whole
            -- transaction.
            set xact_abort on;
            if @is_ended = 1
                delete w
                from rowq.worker w with (rowlock, forceseek)
                where w.queue_id = @queue_id
                  and w.worker_id = @id
                option (maxdop 1, keepfixed plan);
            else
            begin
                update w
                set worker_name          = @worker_name,
                    host_name            = @host_name,
                    worker_version       = @worker_version,
                    threads              = coalesce(@threads, 1),
                    last_seen_at         = iif(@now > w.last_seen_at, @now, w.last_seen_at),
                    completed            = coalesce(@completed, 0),
                    failed               = coalesce(@failed, 0),
                    completed_per_second = iif(
                        @now > w.last_seen_at,
                        iif(@completed > w.completed, @completed - w.completed, 0)
                        / (datediff_big(microsecond, w.last_seen_at, @now) / 1e6),
                        w.completed_per_second
                    ),
                    failed_per_second    = iif(
                        @now > w.last_seen_at,
                        iif(@failed > w.failed, @failed - w.failed, 0)
                        / (datediff_big(microsecond, w.last_seen_at, @now) / 1e6),
                        w.failed_per_second
                    )
                from rowq.worker w with (rowlock, forceseek)
                where w.queue_id = @queue_id
                  and w.worker_id = @id
                option (maxdop 1, keepfixed plan);
                if @@rowcount = 0
                    insert into rowq.worker with (rowlock) (
                        queue_id, worker_id, worker_name, host_name, worker_version, threads,
                        started_at, last_seen_at, completed, failed
                    )
                    values (
                        @queue_id, @id, @worker_name, @host_name, @worker_version,
                        coalesce(@threads, 1), @now, @now, coalesce(@completed, 0),
                        coalesce(@failed, 0)
                    );

                -- Delete at most one row per report, so that no report takes long.
                set @gone = null;
                select top (1) @gone = w.worker_id
                from rowq.worker w with (rowlock, readpast, readcommittedlock, forceseek)
                where w.queue_id = @queue_id
                  and w.last_seen_at < dateadd(hour, -1, @now)
                order by w.worker_id
                option (maxdop 1, keepfixed plan);
                if @gone is not null
                    delete w
                    from rowq.worker w with (rowlock, readpast, readcommittedlock, forceseek)
                    where w.queue_id = @queue_id
                      and w.worker_id = @gone
                    option (maxdop 1, keepfixed plan);
            end;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- Do not end the caller's transaction. If the call had written, it is already
            -- uncommittable.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- Retry a deadlock (1205) in our own transaction.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left > 0
                exec rowq.InternalPauseBeforeRetry;
            if @tries_left = 0
                throw;
        end catch;
    end;

    select cast(@queue_name as nvarchar(200)) as queue_name,
           iif(@is_ended = 1, N'ended', N'reported') as outcome;
end
go
