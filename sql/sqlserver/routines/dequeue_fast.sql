set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.DequeueFast
    @queue_name nvarchar(max),
    @batch_size int = 1,
    @worker_name nvarchar(max) = null,
    @lease_seconds int = null
as
begin
-- routine   DequeueFast
-- version   1
-- purpose   Lease up to batch_size ready messages under one new claim, and skip locked rows.
-- promise   P02 P03 P05 P06 P07 P13 P18 P28 P29
-- locks     the queue, shared; the limit lock, if the queue has limits: waits up to 100 ms; ready
--           rows, skipping locked ones; the new claim row
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   the messages of a claim are rows of leased
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set textsize 2147483647;
    set xact_abort off;
    declare @queue_id int, @claim_id bigint, @lease_until datetime2(6);

    exec rowq.InternalDequeue
        @queue_name, @batch_size, @worker_name, @lease_seconds,
        @queue_id output, @claim_id output, @lease_until output;

    -- After the commit, so that nothing is locked while bodies are read, in key order.
    set transaction isolation level read committed;
    select @claim_id as claim_id, m.message_id, cast(l.attempt as int) as attempt,
           m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at,
           @lease_until as lease_until, m.last_error
    from rowq.leased l with (forceseek)
    inner join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
        on m.queue_id = @queue_id
       and m.message_id = l.message_id
    where l.queue_id = @queue_id
      and l.claim_id = @claim_id
    order by l.lane, l.seq, l.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
end
go
