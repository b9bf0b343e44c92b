set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.ListDelayed
    @queue_name nvarchar(max),
    @after_due_at datetime2(6) = null,
    @after_message_id bigint = 0,
    @max_messages int = 100
as
begin
-- routine   ListDelayed
-- version   1
-- purpose   List delayed messages in the order in which they become due, without bodies.
-- promise   P11
-- locks     delayed and message rows, shared while they are read, skipping locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that was committed late is listed once maintain has corrected its floor
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set textsize 2147483647;
    set xact_abort off;
    declare @begun int, @queue_id int, @floor bigint, @from datetime2(6),
        @after bigint = coalesce(@after_message_id, 0), @rest int;
    declare @page table (
        due_at     datetime2(6) not null,
        message_id bigint not null,
        lane       smallint not null,
        attempt    smallint not null,
        primary key (due_at, message_id)
    );

    begin try
        exec rowq.InternalCheckRange N'max_messages', @max_messages, 1, 10000, @is_required = 1;
        if @after_due_at is null and @after <> 0
            exec rowq.InternalRefuse N'after_message_id requires after_due_at';
        -- With implicit_transactions, begin the caller's transaction at its isolation level.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @queue_id output;

        -- Begin at the floor, to skip ghosts.
        select @floor = l.floor
        from rowq.lane l with (readuncommitted, forceseek)
        where l.queue_id = @queue_id
          and l.lane = -2 /* delayed */;
        exec rowq.InternalFromMicroseconds @floor, @from output;
        if @after_due_at >= @from
            set @from = @after_due_at;
        else
            set @after = 0;

        -- Two seeks: one for both would read all messages due at the same time before the start.
        insert into @page (due_at, message_id, lane, attempt)
        select top (@max_messages) d.due_at, d.message_id, d.lane, d.attempt
        from rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
        where d.queue_id = @queue_id
          and d.due_at = @from
          and d.message_id > @after
        order by d.message_id
        option (maxdop 1, keepfixed plan);
        set @rest = @max_messages - @@rowcount;
        if @rest > 0
            insert into @page (due_at, message_id, lane, attempt)
            select top (@rest) d.due_at, d.message_id, d.lane, d.attempt
            from rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
            where d.queue_id = @queue_id
              and d.due_at > @from
            order by d.due_at, d.message_id
            option (maxdop 1, keepfixed plan);
        select d.message_id, cast(d.lane / 2 as int) as priority,
               cast(d.attempt as int) as attempt, m.message_type, d.due_at, m.last_error
        from @page d
        inner join rowq.message m
            with (
                rowlock, readpast, readcommittedlock, forceseek (message_pk (queue_id, message_id))
            )
            on m.queue_id = @queue_id
           and m.message_id = d.message_id
        order by d.due_at, d.message_id
        option (loop join, force order, maxdop 1, keepfixed plan);
    end try
    begin catch
        -- With xact_abort off, an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go
