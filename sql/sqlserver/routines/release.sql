set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Release
    @queue_name nvarchar(max),
    @claim_id bigint,
    @message_ids nvarchar(max) = null
as
begin
-- routine   Release
-- version   1
-- purpose   Return messages to the front of their priority without spending the attempt.
-- promise   P08 P34 P37
-- locks     the queue, shared; the claim row; then new ready rows; for cancelled messages as
--           complete; new history rows
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    exec rowq.InternalFailOrRelease @queue_name, @claim_id, @message_ids, N'released';
end
go
