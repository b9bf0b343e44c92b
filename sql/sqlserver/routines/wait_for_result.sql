set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.WaitForResult
    @queue_name nvarchar(max),
    @message_id bigint,
    @wait_seconds float = 20
as
begin
-- routine   WaitForResult
-- version   1
-- purpose   Return like get_result, but wait until the message has ended or the time is up.
-- promise   P17 P32
-- locks     rows, shared while they are read, skipping locked ones; none while it waits
-- commits   after each poll, so that no lock is held while it waits
-- errors    RQ701 RQ711 RQ713
-- differs   returns one JSON object, in a result set of one column
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set textsize 2147483647;
    set xact_abort off;
    declare @until datetime2(6), @pause_ms int, @pause char(12), @answer nvarchar(max);
    declare @refusal nvarchar(200) = concat(
        N'RQ713 wrong_transaction_state: wait_for_result commits while it waits;',
        N' call it outside a transaction'
    );

    exec rowq.InternalCheckRange N'wait_seconds', @wait_seconds, 0, 3600, @is_required = 1;
    -- With implicit_transactions (bit 2) the first poll would begin a transaction.
    if @@trancount > 0 or @@options & 2 = 2
        throw 52713, @refusal, 1;
    set @until = dateadd(
        millisecond, cast(round(@wait_seconds * 1000, 0) as int), sysutcdatetime()
    );

    begin try
        set transaction isolation level read committed;
        while 1 = 1
        begin
            exec rowq.InternalPollResult
                @queue_name, @message_id, @until, @pause_ms output, @answer output;
            if @pause_ms is null
                break;
            set @pause = concat(N'00:00:00.', right(concat(N'00', @pause_ms), 3));
            waitfor delay @pause;
        end;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;

    select @answer as answer;
end
go
