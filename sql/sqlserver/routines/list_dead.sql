set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.ListDead
    @queue_name nvarchar(max),
    @after_message_id bigint = 0,
    @max_messages int = 100,
    @before_message_id bigint = null,
    @message_type nvarchar(max) = null
as
begin
-- routine   ListDead
-- version   1
-- purpose   List dead messages by id, forwards or backwards, without bodies.
-- promise   P10
-- locks     dead and message rows, shared while they are read, skipping locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set textsize 2147483647;
    set xact_abort off;
    declare @begun int, @queue_id int;

    begin try
        exec rowq.InternalCheckRange N'max_messages', @max_messages, 1, 10000, @is_required = 1;
        -- With implicit_transactions, begin the caller's transaction at its isolation level.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @queue_id output;

        -- Compare lengths too: texts that differ in trailing blanks are equal.
        if @before_message_id is null
            select top (@max_messages) d.message_id, cast(d.lane / 2 as int) as priority,
                   cast(d.attempt as int) as attempt, m.message_type, m.enqueued_at, d.died_at,
                   m.last_error
            from rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
            inner join rowq.message m
                with (
                    rowlock, readpast, readcommittedlock,
                    forceseek (message_pk (queue_id, message_id))
                )
                on m.queue_id = @queue_id
               and m.message_id = d.message_id
            where d.queue_id = @queue_id
              and d.message_id > coalesce(@after_message_id, 0)
              and (
                  @message_type is null
                  or m.message_type = @message_type
                  and datalength(m.message_type) = datalength(@message_type)
              )
            order by d.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
        else
            select top (@max_messages) d.message_id, cast(d.lane / 2 as int) as priority,
                   cast(d.attempt as int) as attempt, m.message_type, m.enqueued_at, d.died_at,
                   m.last_error
            from rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
            inner join rowq.message m
                with (
                    rowlock, readpast, readcommittedlock,
                    forceseek (message_pk (queue_id, message_id))
                )
                on m.queue_id = @queue_id
               and m.message_id = d.message_id
            where d.queue_id = @queue_id
              and d.message_id > coalesce(@after_message_id, 0)
              and d.message_id < @before_message_id
              and (
                  @message_type is null
                  or m.message_type = @message_type
                  and datalength(m.message_type) = datalength(@message_type)
              )
            order by d.message_id desc
            option (loop join, force order, maxdop 1, keepfixed plan);
    end try
    begin catch
        -- With xact_abort off, an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go
