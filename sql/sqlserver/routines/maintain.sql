set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Maintain
    @queue_name nvarchar(max) = null,
    @batch_size int = 1000
as
begin
-- routine   Maintain
-- version   1
-- purpose   Run the maintenance of one queue or all; call it about once a second.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P34 P36 P37 P49
-- locks     a row of lane per queue, and due schedules, skipped if locked; as enqueue for these,
--           for 20 ms; as promote, reap, archive
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   without a name up to 1000 queues, at random; outside a transaction it waits up to 1 s
--           for a lock, and after an error it continues with the other queues and raises the first
--           error at its end; in an open transaction the archive keeps its partitions, groups are
--           not changed, and schedules with a group or without overlap are skipped
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    exec rowq.InternalMaintain @queue_name, @batch_size, @is_quiet = 0;
end
go
