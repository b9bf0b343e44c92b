-- Results: how messages ended, and waiting for that.
--
-- If a queue has result_seconds, the call that ends a message adds a row to result in the same
-- transaction: completed with its result, dead with its last error, cancelled or expired. reset
-- deletes it. get_result reads it by key; wait_for_result polls it in short transactions of a few
-- reads by key. maintain purges in the order of finished_at, from a floor. Without result_seconds
-- complete runs no statement for results.
--
--   complete -> check_results
--   complete, block, propagate_deaths, ... -> push_result
--   get_result -> read_result
--   wait_for_result -> poll_result -> read_result
--   maintain_retention -> purge_results
--
-- Writes lane, result. Only reads archived, message, queue.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalCheckResults
    @results nvarchar(max),
    @count int,
    @result_seconds float
as
begin
-- purpose   Refuse results that are invalid, are not one per message, or are not kept by the queue.
-- errors    RQ711
    set nocount on;
    declare @longest int = 1048576;
    declare @kind int, @input int, @error nvarchar(200);

    if @result_seconds = 0
        exec rowq.InternalRefuse N'the queue does not keep results: result_seconds is 0';
    -- openjson reports an array as type 4, and fails for text that is not JSON or is nested deeper
    -- than 128. So check with isjson first: the array alone, and at the depth at which it is read
    -- below.
    if isjson(@results) = 1 and isjson(concat(N'[{"headers":{"results":', @results, N'}}]')) = 1
        select @kind = max(j.[type])
        from openjson(concat(N'[', @results, N']')) j;
    if @kind is null or @kind <> 4
        exec rowq.InternalRefuse N'results must be a JSON array';

    select @input = count(*) from openjson(@results) j;
    if @input <> @count
        set @error = concat(
            N'results must have one value per message: got ', @input, N' results for ', @count,
            N' messages'
        );
    -- The collation counts an emoji as one character, but slowly, so use it only if there are more
    -- UTF-16 units than allowed characters. A text also has two quotes.
    else if datalength(@results) / 2 > @longest
        select top (1) @error = concat(N'a result must be at most ', @longest, N' characters')
        from openjson(@results) j
        where datalength(j.value) / 2 + 2 > @longest
          and len((j.value + N'.') collate Latin1_General_100_CI_AS_SC) - 1
              + iif(j.[type] = 1, 2, 0) > @longest;
    if @error is not null
        exec rowq.InternalRefuse @error;

    -- A result may be 20 deep, two levels below the headers.
    set @results = concat(N'[{"headers":{"results":', @results, N'}}]');
    exec rowq.InternalCheckHeaders @results, @is_batch = 0, @name = N'results', @deepest = 22;
end
go

create or alter procedure rowq.InternalPushResult
    @queue_id int,
    @messages rowq.message_list readonly,
    @state nvarchar(20),
    @error nvarchar(max) = null,
    @results nvarchar(max) = null,
    @message_ids nvarchar(max) = null
as
begin
-- purpose   Record how messages ended, if the queue keeps results; @results follows @message_ids.
-- locks     result rows
--
-- Without @message_ids there is one message. Without @error a dead message keeps the error of its
-- row in message.
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    -- The collation counts an emoji as one character.
    declare @text nvarchar(4000) = left(@error collate Latin1_General_100_CI_AS_SC, 2000);
    declare @is_kept bit = 0;

    select @is_kept = 1
    from rowq.queue q with (forceseek)
    where q.queue_id = @queue_id
      and q.result_seconds > 0;
    if @is_kept = 0
        return;

    if @results is not null
    begin
        if @message_ids is null
            select @message_ids = concat(N'[', j.message_id, N']') from @messages j;
        -- openjson reports null as type 0 and text, unescaped, as type 1.
        insert into rowq.result with (rowlock) (queue_id, message_id, finished_at, state, result)
        select @queue_id, j.message_id, @now, @state,
               case r.[type]
                   when 0 then null
                   when 1 then concat(N'"', string_escape(r.value, N'json'), N'"')
                   else r.value
               end
        from @messages j
        inner join (
            select cast(a.value as bigint) as message_id, min(cast(a.[key] as int)) as place
            from openjson(@message_ids) a
            group by cast(a.value as bigint)
        ) w on w.message_id = j.message_id
        inner join openjson(@results) r on cast(r.[key] as int) = w.place
        option (hash join, maxdop 1, keepfixed plan);
        return;
    end;

    -- A dead message that is cancelled or purged already has a row.
    update r
    set finished_at = @now,
        state       = @state
    from @messages j
    inner join rowq.result r with (index (result_pk), rowlock, forceseek)
        on r.queue_id = @queue_id
       and r.message_id = j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    insert into rowq.result with (rowlock) (queue_id, message_id, finished_at, state, last_error)
    select @queue_id, j.message_id, @now, @state, coalesce(@text, m.last_error)
    from @messages j
    left join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
        on m.queue_id = @queue_id
       and m.message_id = j.message_id
       and @state = N'dead'
       and @text is null
    where not exists (
        select 1
        from rowq.result r with (forceseek (result_pk (queue_id, message_id)))
        where r.queue_id = @queue_id
          and r.message_id = j.message_id
    )
    option (loop join, force order, maxdop 1, keepfixed plan);
end
go

create or alter procedure rowq.InternalReadResult
    @queue_id int,
    @message_id bigint,
    @state nvarchar(20) output,
    @finished_at datetime2(6) output,
    @result nvarchar(max) output,
    @last_error nvarchar(4000) output
as
begin
-- purpose   Return the state of a message, with its result if it has ended; nulls if it is unknown.
-- locks     rows, shared while they are read, skipping locked ones; the result row, tried
    set nocount on;
    declare @enqueued_at datetime2(6), @due_at datetime2(6), @group_key nvarchar(400),
        @own_error nvarchar(4000), @found_state nvarchar(20), @lane smallint, @attempt smallint,
        @claim_id bigint, @worker_name nvarchar(400), @lease_until datetime2(6),
        @ended_at datetime2(6), @waits_for bigint, @progress nvarchar(4000);
    set @state = null;
    set @finished_at = null;
    set @result = null;
    set @last_error = null;

    select @enqueued_at = m.enqueued_at, @due_at = m.due_at, @group_key = m.group_key,
           @own_error = m.last_error
    from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
    where m.queue_id = @queue_id
      and m.message_id = @message_id;
    if @enqueued_at is not null
        exec rowq.InternalLocateMessages
            @queue_id, @message_id, @enqueued_at, @group_key, @due_at output, @found_state output,
            @lane output, @attempt output, @claim_id output, @worker_name output,
            @lease_until output, @ended_at output, @waits_for output, @progress output;
    else
    begin
        -- A locked row (error 1222, nowait) must not look like a deleted one. Without xact_abort
        -- the error ends no transaction.
        set xact_abort off;
        begin try
            select @found_state = N'leased'
            from rowq.message m with (rowlock, readcommittedlock, nowait, forceseek)
            where m.queue_id = @queue_id
              and m.message_id = @message_id;
        end try
        begin catch
            if error_number() <> 1222
                throw;
            set @found_state = N'leased';
        end catch;
    end;
    if @found_state in (N'ready', N'delayed', N'blocked', N'leased')
    begin
        set @state = @found_state;
        return;
    end;

    -- Read the result last: it was committed together with the end seen above. Its row may be
    -- locked, like the message above.
    set xact_abort off;
    begin try
        select @state = r.state, @finished_at = r.finished_at, @result = r.result,
               @last_error = r.last_error
        from rowq.result r with (index (result_pk), rowlock, readcommittedlock, nowait, forceseek)
        where r.queue_id = @queue_id
          and r.message_id = @message_id;
    end try
    begin catch
        if error_number() <> 1222
            throw;
        set @state = N'leased';
    end catch;
    if @state is not null
        return;
    if @found_state is not null
    begin
        set @state = @found_state;
        set @finished_at = @ended_at;
        set @last_error = iif(@found_state = N'dead', @own_error, null);
        return;
    end;
    select @state = a.state, @finished_at = a.finished_at
    from rowq.archived a with (index (archived_message_ix), rowlock, readpast, readcommittedlock)
    where a.queue_id = @queue_id
      and a.message_id = @message_id;
end
go

create or alter procedure rowq.InternalPollResult
    @queue_name nvarchar(max),
    @message_id bigint,
    @until datetime2(6),
    @pause_ms int output,
    @answer nvarchar(max) output
as
begin
-- purpose   Return the row of get_result as a JSON object, or the pause before the next poll.
-- locks     as InternalReadResult
-- errors    RQ701 RQ711
--
-- @pause_ms is the pause before this poll, in milliseconds.
    set nocount on;
    declare @queue_id int, @result_seconds float;
    declare @is_last bit = iif(sysutcdatetime() >= @until, 1, 0);
    declare @left_ms bigint, @state nvarchar(20), @finished_at datetime2(6), @result nvarchar(max),
        @last_error nvarchar(4000);
    set @answer = null;

    if @message_id is null
        exec rowq.InternalRefuse N'message_id is required';
    exec rowq.InternalRequireQueue
        @queue_name, @queue_id output, @result_seconds = @result_seconds output;
    -- Most polls need only the result, by its key.
    select @state = r.state, @finished_at = r.finished_at, @result = r.result,
           @last_error = r.last_error
    from rowq.result r with (index (result_pk), rowlock, readpast, readcommittedlock, forceseek)
    where r.queue_id = @queue_id
      and r.message_id = @message_id;

    -- The first and the last poll read the message's state.
    if @state is null and (@pause_ms is null or @is_last = 1)
    begin
        exec rowq.InternalReadResult
            @queue_id, @message_id, @state output, @finished_at output, @result output,
            @last_error output;
        if @state is null
            set @is_last = 1;
    end;
    if @is_last = 0 and @finished_at is null
    begin
        if @result_seconds = 0
            exec rowq.InternalRefuse N'the queue does not keep results: result_seconds is 0';
        set @left_ms = datediff_big(millisecond, sysutcdatetime(), @until);
        set @pause_ms = iif(@pause_ms > 125, 250, coalesce(@pause_ms * 2, 20));
        if @pause_ms > @left_ms
            set @pause_ms = iif(@left_ms > 1, @left_ms, 1);
        return;
    end;

    set @pause_ms = null;
    -- "for json" cannot embed a result that is a number or a text.
    if @state is not null
        set @answer = concat(
            N'{"message_id":', @message_id, N',"state":"', @state, N'","finished_at":',
            iif(
                @finished_at is null, N'null',
                concat(N'"', convert(nvarchar(30), @finished_at, 126), N'+00:00"')
            ),
            N',"result":', coalesce(@result, N'null'), N',"last_error":',
            iif(
                @last_error is null, N'null',
                concat(N'"', string_escape(@last_error, N'json'), N'"')
            ),
            N'}'
        );
end
go

create or alter procedure rowq.InternalPurgeResults
    @queue_id int,
    @seconds float,
    @limit int,
    @owns_transaction bit,
    @purged int output
as
begin
-- purpose   Delete up to @limit expired results; return how many.
-- locks     result rows, skipping locked ones; lane -7, tried
    set nocount on;
    declare @floor bigint, @is_open bit, @since datetime2(6);
    declare @before datetime2(6) = dateadd(
        microsecond, -cast(round((@seconds - floor(@seconds)) * 1e6, 0) as int),
        dateadd(second, -cast(floor(@seconds) as int), sysutcdatetime())
    );
    declare @old table (message_id bigint not null primary key);
    set @purged = 0;

    select @floor = l.floor, @is_open = l.is_open
    from rowq.lane l with (readuncommitted, forceseek)
    where l.queue_id = @queue_id
      and l.lane = -7 /* result */;
    exec rowq.InternalFromMicroseconds @floor, @since output;
    -- Read rows with short locks, then lock them by the primary key, as their writers do.
    insert into @old (message_id)
    select top (@limit) r.message_id
    from rowq.result r
        with (index (result_finished_ix), rowlock, readpast, readcommittedlock, forceseek)
    where r.queue_id = @queue_id
      and r.finished_at >= @since
      and r.finished_at < @before
    order by r.finished_at, r.message_id
    option (maxdop 1, keepfixed plan);
    if @@rowcount > 0
    begin
        delete r
        from @old o
        inner join rowq.result r
            with (index (result_pk), rowlock, xlock, readpast, readcommittedlock, forceseek)
            on r.queue_id = @queue_id
           and r.message_id = o.message_id
        where r.finished_at < @before
        option (loop join, force order, maxdop 1, keepfixed plan);
        set @purged = @@rowcount;
    end;

    -- From now on maintain moves the floor.
    if @is_open = 0 and @owns_transaction = 1
        update l
        set is_open = 1
        from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where l.queue_id = @queue_id
          and l.lane = -7 /* result */;
end
go
