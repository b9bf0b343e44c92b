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
-- locks     rows, shared while they are read, skipping locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   changes of open transactions are not visible; may return a message that ends during the
--           call
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
        -- Under implicit_transactions this read opens the caller's transaction, at the caller's
        -- isolation level. @begun keeps the value out of the caller's results.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @queue_id output;

        -- No key is longer, and the conversion below would truncate a longer text to a key.
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
