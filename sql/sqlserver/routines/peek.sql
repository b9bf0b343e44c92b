set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Peek
    @queue_name nvarchar(max),
    @max_messages int = 1
as
begin
-- routine   Peek
-- version   1
-- purpose   Show the next ready messages without leasing them.
-- promise   P05
-- locks     ready and message rows, shared while reading, skipping locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set textsize 2147483647;
    set xact_abort off;
    declare @begun int, @queue_id int;
    declare @left int = @max_messages;
    declare @lane smallint = -1, @next smallint, @floor bigint;
    declare @found table (
        lane       smallint not null,
        seq        bigint not null,
        message_id bigint not null,
        attempt    smallint not null,
        primary key (lane, seq, message_id)
    );

    begin try
        exec rowq.InternalCheckRange N'max_messages', @max_messages, 1, 1000, @is_required = 1;
        -- Under implicit_transactions this read begins the caller's transaction, before the
        -- isolation level changes. @begun only keeps the value out of the results.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @queue_id output;

        while @left > 0
        begin
            set @next = null;
            select top (1) @next = l.lane, @floor = l.floor
            from rowq.lane l with (readuncommitted, forceseek)
            where l.queue_id = @queue_id
              and l.lane > @lane
              and l.is_open = 1
            order by l.lane
            option (maxdop 1, keepfixed plan);
            if @next is null
                break;
            set @lane = @next;

            insert into @found (lane, seq, message_id, attempt)
            select top (@left) r.lane, r.seq, r.message_id, r.attempt
            from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
            where r.queue_id = @queue_id
              and r.lane = @lane
              and r.seq >= @floor
            order by r.seq, r.message_id
            option (maxdop 1, keepfixed plan);
            set @left -= @@rowcount;
        end;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;

    select m.message_id, j.lane / 2 as priority, cast(j.attempt as int) as attempt,
           m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at, m.last_error
    from @found j
    inner join rowq.message m
        with (rowlock, readpast, readcommittedlock, forceseek (message_pk (queue_id, message_id)))
        on m.queue_id = @queue_id
       and m.message_id = j.message_id
    order by j.lane, j.seq, j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
end
go
