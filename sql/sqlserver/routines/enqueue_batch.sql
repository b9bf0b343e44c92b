set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.EnqueueBatch
    @queue_name nvarchar(max),
    @messages nvarchar(max)
as
begin
-- routine   EnqueueBatch
-- version   1
-- purpose   Enqueue many messages in one call: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P26 P27 P36
-- locks     as enqueue; dedup and group keys in key order
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    exec rowq.InternalEnqueueBatch @queue_name, @messages;
end
go
