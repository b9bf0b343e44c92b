-- Health: what health and queue_stats measure.
--
-- Each check returns its name, the queue, a value, and the thresholds for warning and critical.
-- health starts at the floor of each table. queue_stats counts up to max_count. Checks of the
-- server name the session or transaction that an operator has to end.
--
--   health -> health_sequences -> stored_numbers
--   health -> health_server
--   after_failover -> stored_numbers, advance_sequence, advance_queue_ids
--
-- Reads claim, history, message, queue, result.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalHealthSequences
    @message_behind bigint output,
    @claim_behind bigint output,
    @queue_behind bigint output
as
begin
-- purpose   Return how far the newest numbers stored are above each sequence; null if it is invisible.
-- locks     as InternalStoredNumbers
    set nocount on;
    declare @message_id bigint, @claim_id bigint, @queue_id bigint;
    exec rowq.InternalStoredNumbers @message_id output, @claim_id output, @queue_id output;

    -- Read the sequences after the rows, so that they are not older. current_value is visible only
    -- with a right on the sequence.
    set @message_behind = null;
    set @claim_behind = null;
    select @message_behind = @message_id - cast(s.current_value as bigint)
    from sys.sequences s
    where s.object_id = object_id(N'rowq.message_seq');
    select @claim_behind = @claim_id - cast(s.current_value as bigint)
    from sys.sequences s
    where s.object_id = object_id(N'rowq.claim_seq');
    set @queue_behind = @queue_id - cast(ident_current(N'rowq.queue') as bigint);
end
go

create or alter procedure rowq.InternalStoredNumbers
    @message_id bigint output,
    @claim_id bigint output,
    @queue_id bigint output
as
begin
-- purpose   Return the newest numbers of messages, claims and queues that the tables show, or 0.
-- locks     rows, shared while they are read, skipping locked ones
    set nocount on;

    select @message_id = coalesce(max(n.message_id), 0),
           @claim_id = coalesce(max(n.claim_id), 0), @queue_id = coalesce(max(q.queue_id), 0)
    from rowq.queue q
    -- top keeps each of these an apply: a join could not seek.
    outer apply (
        select top (1) m.message_id
        from rowq.message m
            with (
                rowlock, readpast, readcommittedlock,
                forceseek (message_pk (queue_id, message_id))
            )
        where m.queue_id = q.queue_id
          and m.message_id > 0
        order by m.message_id desc
    ) m
    outer apply (
        select top (1) r.message_id
        from rowq.result r
            with (
                rowlock, readpast, readcommittedlock,
                forceseek (result_pk (queue_id, message_id))
            )
        where r.queue_id = q.queue_id
          and r.message_id > 0
        order by r.message_id desc
    ) r
    outer apply (
        select top (1) h.message_id
        from rowq.history h
            with (
                rowlock, readpast, readcommittedlock,
                forceseek (history_message_ix (queue_id, message_id))
            )
        where h.queue_id = q.queue_id
          and h.message_id > 0
        order by h.message_id desc
    ) h
    outer apply (
        select top (1) c.claim_id
        from rowq.claim c
            with (
                rowlock, readpast, readcommittedlock,
                forceseek (claim_pk (queue_id, claim_id))
            )
        where c.queue_id = q.queue_id
          and c.claim_id > 0
        order by c.claim_id desc
    ) c
    cross apply (
        values
            (m.message_id, c.claim_id),
            (r.message_id, null),
            (h.message_id, null)
    ) n (message_id, claim_id)
    option (loop join, maxdop 1, keepfixed plan);
end
go

create or alter procedure rowq.InternalAdvanceSequence
    @sequence nvarchar(100),
    @newest bigint,
    @was bigint output,
    @is_now bigint output
with execute as owner
as
begin
-- purpose   Move a sequence a thousand million beyond its value and the newest number stored.
-- commits   never; the value stays after a rollback
    set nocount on;
    declare @first sql_variant;
    declare @size bigint;
    select @was = cast(s.current_value as bigint)
    from sys.sequences s
    where s.object_id = object_id(@sequence);
    set @size = 1000000000 + iif(@newest > @was, @newest - @was, 0);
    -- This takes the numbers as one step, so two calls never return the same ones.
    exec sys.sp_sequence_get_range
        @sequence_name = @sequence, @range_size = @size, @range_first_value = @first output;
    set @is_now = cast(@first as bigint) + @size - 1;
end
go

create or alter procedure rowq.InternalAdvanceQueueIds
    @newest bigint,
    @was bigint output,
    @is_now bigint output
with execute as owner
as
begin
-- purpose   Move the ids of new queues a thousand beyond the newest one.
-- locks     the table queue, until the transaction ends; waits up to 1 s
-- commits   never
    set nocount on;
    set lock_timeout 1000;
    set @was = cast(ident_current(N'rowq.queue') as bigint);
    set @is_now = iif(@newest > @was, @newest, @was) + 1000;
    dbcc checkident (N'rowq.queue', reseed, @is_now) with no_infomsgs;
end
go

create or alter procedure rowq.InternalHealthServer
    @seconds float output,
    @detail nvarchar(500) output
as
begin
-- purpose   Return the age and the session of the oldest transaction of this database.
    set nocount on;
    declare @session_id int;
    declare @database nvarchar(300) = quotename(db_name());
    -- Azure SQL requires a right on the database, a server one on the server. The narrower rights
    -- are new in SQL Server 2022; older servers return null for them.
    declare @is_allowed int = iif(
        cast(serverproperty('EngineEdition') as int) = 5,
        coalesce(
            nullif(has_perms_by_name(@database, N'DATABASE', N'VIEW DATABASE STATE'), 0),
            has_perms_by_name(@database, N'DATABASE', N'VIEW DATABASE PERFORMANCE STATE'), 0
        ),
        coalesce(
            nullif(has_perms_by_name(null, null, N'VIEW SERVER STATE'), 0),
            has_perms_by_name(null, null, N'VIEW SERVER PERFORMANCE STATE'), 0
        )
    );
    set @seconds = 0;
    set @detail = N'unknown: the caller cannot see other sessions; grant VIEW SERVER STATE';
    if @is_allowed = 0
        return;

    begin try
        select top (1) @session_id = o.session_id, @seconds = o.seconds
        from (
            select s.session_id,
                   -- transaction_begin_time is in the time zone of the machine, so compare with
                   -- local time.
                   cast(
                       datediff(
                           second, t.transaction_begin_time,
                           cast(sysdatetimeoffset() as datetime2(3))
                       ) as float
                   ) as seconds
            from sys.dm_tran_active_transactions t
            inner join sys.dm_tran_session_transactions s on s.transaction_id = t.transaction_id
            inner join sys.dm_tran_database_transactions d on d.transaction_id = t.transaction_id
            where d.database_id = db_id()
            union all
            select v.session_id, cast(v.elapsed_time_seconds as float)
            from sys.dm_tran_active_snapshot_database_transactions v
        ) o
        where o.session_id <> @@spid
        order by o.seconds desc;
        set @detail = iif(
            @session_id is null or @seconds < 1,
            N'no transaction is older than 1 second',
            concat(
                N'session ', @session_id, N' prevents cleanup of row versions and ghosts;',
                N' rowq stays fast, other tables bloat'
            )
        );
    end try
    begin catch
        -- Smaller tiers of Azure SQL show these views only to the server's administrator.
        if xact_state() = -1
            throw;
        set @seconds = 0;
        set @detail = concat(N'unknown: ', left(error_message(), 400));
    end catch;
end
go
