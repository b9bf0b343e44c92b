set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.FindMessage
    @queue_name nvarchar(max),
    @dedup_key nvarchar(max)
as
begin
-- routine   FindMessage
-- version   1
-- purpose   Return the unfinished message with a dedup key, as get_message does.
-- promise   P12 P20
-- locks     rows, shared while they are read, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   what another open transaction has changed is not seen until it ends; a message that
--           ends while it is looked for may be returned as one that has ended
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    declare @begun int;
    declare @queue_id int;
    declare @key_bytes varbinary(802);
    -- No message has the id 0.
    declare @message_id bigint = 0;

    begin try
        if @dedup_key is null
            exec rowq.InternalRefuse N'dedup_key is required';
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @queue_id output;

        -- A longer text is no key of a message, but the conversion below would cut it off, and it
        -- could look like one.
        if datalength(@dedup_key) <= 800
        begin
            set @key_bytes = convert(varbinary(802), @dedup_key + N'.');
            select @message_id = d.message_id
            from rowq.dedup d with (rowlock, readpast, readcommittedlock, forceseek)
            where d.queue_id = @queue_id
              and d.dedup_key = @key_bytes;
        end;
        exec rowq.GetMessage @queue_name, @message_id;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go
