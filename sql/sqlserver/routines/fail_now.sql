set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.FailNow
    @queue_name nvarchar(max),
    @claim_id bigint,
    @message_ids nvarchar(max) = null,
    @error nvarchar(max) = null
as
begin
-- routine   FailNow
-- version   1
-- purpose   Declare messages dead without another attempt.
-- promise   P08 P10 P34 P37
-- locks     the queue, shared; the claim row; then message rows: waits for a producer that has just
--           named one as a predecessor; dead and dedup rows; for cancelled messages as complete;
--           rows of groups, skipping locked ones; new history rows
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    exec rowq.InternalFailOrRelease
        @queue_name, @claim_id, @message_ids, N'dead', @error;
end
go
