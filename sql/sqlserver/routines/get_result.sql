set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.GetResult
    @queue_name nvarchar(max),
    @message_id bigint
as
begin
-- routine   GetResult
-- version   1
-- purpose   Return the outcome and result of a message, or its state if unfinished.
-- promise   P32
-- locks     rows, shared while they are read, skipping locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that an open transaction moves or ends is leased until it ends
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set textsize 2147483647;
    set xact_abort off;
    declare @begun int, @queue_id int, @state nvarchar(20), @finished_at datetime2(6),
        @result nvarchar(max), @last_error nvarchar(4000);

    begin try
        if @message_id is null
            exec rowq.InternalRefuse N'message_id is required';
        -- With implicit_transactions, begin the caller's transaction at its isolation level.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @queue_id output;
        exec rowq.InternalReadResult
            @queue_id, @message_id, @state output, @finished_at output, @result output,
            @last_error output;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;

    select @message_id as message_id, @state as state, @finished_at as finished_at,
           @result as result, @last_error as last_error
    where @state is not null;
end
go
