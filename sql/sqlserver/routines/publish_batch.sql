set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.PublishBatch
    @messages nvarchar(max)
as
begin
-- routine   PublishBatch
-- version   1
-- purpose   Publish many messages in one call: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as InternalBoundQueues; as enqueue_batch, in the order of queue names
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    exec rowq.InternalEnqueueBatch null, @messages, @is_published = 1;
end
go
