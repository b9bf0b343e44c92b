set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.CompleteAndDequeue
    @queue_name nvarchar(max),
    @claim_id bigint,
    @message_ids nvarchar(max) = null,
    @results nvarchar(max) = null,
    @batch_size int = 1,
    @worker_name nvarchar(max) = null,
    @lease_seconds int = null
as
begin
-- routine   CompleteAndDequeue
-- version   1
-- purpose   Complete messages of a claim and lease the next ones, in one call and one commit.
-- promise   P02 P03 P04 P05 P06 P07 P08 P13 P18 P21 P22 P23 P24 P26 P28 P29 P32 P37 P49
-- locks     as complete, then as dequeue_fast
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set textsize 2147483647;
    set xact_abort off;
    declare @queue_id int, @new_claim_id bigint, @lease_until datetime2(6),
        @stale_ids nvarchar(max);
    declare @lines table (
        place      int not null primary key,
        outcome    nvarchar(20) not null,
        claim_id   bigint not null,
        message_id bigint null,
        attempt    int null
    );

    if @claim_id is null
        exec rowq.InternalRefuse N'claim_id is required';
    exec rowq.InternalDequeue
        @queue_name, @batch_size, @worker_name, @lease_seconds,
        @queue_id output, @new_claim_id output, @lease_until output,
        @old_claim_id = @claim_id, @message_ids = @message_ids, @results = @results,
        @stale_ids = @stale_ids output;

    -- After the commit, so that nothing is locked while bodies are read, in key order.
    set transaction isolation level read committed;
    if @stale_ids is null
    begin
        select N'leased' as outcome, @new_claim_id as claim_id, m.message_id,
               cast(l.attempt as int) as attempt, m.message_type, m.headers, m.body, m.body_binary,
               m.enqueued_at, @lease_until as lease_until, m.last_error
        from rowq.leased l with (forceseek)
        inner join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
            on m.queue_id = @queue_id
           and m.message_id = l.message_id
        where l.queue_id = @queue_id
          and l.claim_id = @new_claim_id
        order by l.lane, l.seq, l.message_id
        option (loop join, force order, maxdop 1, keepfixed plan);
        return;
    end;

    -- Number the rows first, so that no body is sorted. There are at most 10000 stale messages.
    insert into @lines (place, outcome, claim_id, message_id)
    select cast(j.[key] as int), N'stale', @claim_id, cast(j.value as bigint)
    from openjson(@stale_ids) j;
    insert into @lines (place, outcome, claim_id, message_id, attempt)
    select 10000 + row_number() over (order by l.lane, l.seq, l.message_id), N'leased',
           @new_claim_id, l.message_id, l.attempt
    from rowq.leased l with (forceseek)
    where l.queue_id = @queue_id
      and l.claim_id = @new_claim_id
    option (maxdop 1, keepfixed plan);
    select r.outcome, r.claim_id, r.message_id, r.attempt, m.message_type, m.headers, m.body,
           m.body_binary, m.enqueued_at, iif(r.attempt is null, null, @lease_until) as lease_until,
           m.last_error
    from @lines r
    left join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
        on m.queue_id = @queue_id
       and m.message_id = r.message_id
       and r.outcome = N'leased'
    order by r.place
    option (loop join, force order, maxdop 1, keepfixed plan);
end
go
