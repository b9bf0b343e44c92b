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
-- locks     new rows; the queue, shared; with dedup and group keys, waits as enqueue does, in the
--           order of the keys; message rows of predecessors, shared, tried only
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    exec rowq.InternalEnqueueBatch @queue_name, @messages;
end
go
