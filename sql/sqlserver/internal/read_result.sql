set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalReadResult
    @part_id int,
    @message_id bigint,
    @state nvarchar(20) output,
    @finished_at datetime2(6) output,
    @result nvarchar(max) output,
    @last_error nvarchar(4000) output
as
begin
-- routine   InternalReadResult
-- purpose   Return how a message has ended, and its result; of one that has not ended its state; nulls when rowq does not know it.
-- promise   P32
-- locks     rows, shared while they are read, passing over locked ones; the result row, tried
-- differs   no such helper on PostgreSQL: part of get_result
    set nocount on;
    declare @enqueued_at datetime2(6);
    declare @due_at datetime2(6);
    declare @group_key nvarchar(400);
    declare @own_error nvarchar(4000);
    declare @place nvarchar(20);
    declare @lane smallint;
    declare @attempt smallint;
    declare @claim_id bigint;
    declare @worker_name nvarchar(400);
    declare @lease_until datetime2(6);
    declare @ended_at datetime2(6);
    declare @waits_for bigint;
    declare @progress nvarchar(4000);
    set @state = null;
    set @finished_at = null;
    set @result = null;
    set @last_error = null;

    select @enqueued_at = m.enqueued_at, @due_at = m.due_at, @group_key = m.group_key,
           @own_error = m.last_error
    from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
    where m.part_id = @part_id
      and m.message_id = @message_id;
    if @enqueued_at is not null
        exec rowq.InternalLocateMessages
            @part_id, @message_id, @enqueued_at, @group_key, @due_at output, @place output,
            @lane output, @attempt output, @claim_id output, @worker_name output,
            @lease_until output, @ended_at output, @waits_for output, @progress output;
    else
    begin
        -- A row that another session has locked is error 1222 (nowait): it must not look like one
        -- that is gone. Without xact_abort that error ends no transaction.
        set xact_abort off;
        begin try
            select @place = N'leased'
            from rowq.message m with (rowlock, readcommittedlock, nowait, forceseek)
            where m.part_id = @part_id
              and m.message_id = @message_id;
        end try
        begin catch
            if error_number() <> 1222
                throw;
            set @place = N'leased';
        end catch;
    end;
    if @place in (N'ready', N'delayed', N'blocked', N'leased')
    begin
        set @state = @place;
        return;
    end;

    -- Look for the result last, because it is committed together with the end that was seen. It may
    -- be in another session's hands, as the message may be above.
    set xact_abort off;
    begin try
        select @state = r.state, @finished_at = r.finished_at, @result = r.result,
               @last_error = r.last_error
        from rowq.result r with (index (result_pk), rowlock, readcommittedlock, nowait, forceseek)
        where r.part_id = @part_id
          and r.message_id = @message_id;
    end try
    begin catch
        if error_number() <> 1222
            throw;
        set @state = N'leased';
    end catch;
    if @state is not null
        return;
    if @place is not null
    begin
        set @state = @place;
        set @finished_at = @ended_at;
        set @last_error = iif(@place = N'dead', @own_error, null);
        return;
    end;
    select @state = a.state, @finished_at = a.finished_at
    from rowq.archived a with (index (archived_message_ix), rowlock, readpast, readcommittedlock)
    where a.part_id = @part_id
      and a.message_id = @message_id;
end
go
