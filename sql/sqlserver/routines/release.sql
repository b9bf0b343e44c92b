set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Release
    @queue_name nvarchar(max),
    @claim_id bigint,
    @message_ids nvarchar(max) = null,
    @delay_seconds float = null
as
begin
-- routine   Release
-- version   1
-- purpose   Return messages without spending the attempt: to the front of their priority, or after a delay.
-- promise   P08 P34 P37 P38
-- locks     the queue, shared; the claim row; then new ready rows, or with a delay message rows:
--           waits for a producer that has just named one as a predecessor; new delayed rows; for
--           cancelled messages as complete; new history rows
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    declare @outcome nvarchar(20) = iif(@delay_seconds > 0, N'snoozed', N'released');

    exec rowq.InternalFailOrRelease
        @queue_name, @claim_id, @message_ids, @outcome, @delay_seconds = @delay_seconds;
end
go
