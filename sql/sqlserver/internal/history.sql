-- History: attempts that have ended.
--
-- If a queue has history_days, each call that ends attempts adds a row per attempt to history in
-- the same transaction, one insert per outcome. maintain and purge_archive delete by key in the
-- order of ended_at, from a floor. There are no partitions: dropping one would lock the table that
-- every finishing call inserts into.
--
--   complete, retry_later, fail_or_release, ... -> push_history
--   purge_archive, maintain_retention -> purge_history
--
-- Writes history, lane.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalPushHistory
    @queue_id int,
    @claim_id bigint,
    @worker_name nvarchar(400),
    @leased_at datetime2(6),
    @messages rowq.message_list readonly,
    @outcome nvarchar(20),
    @error nvarchar(max) = null
as
begin
-- purpose   Record ended attempts of a claim: cancelled if is_cancelled, else with @outcome.
-- locks     new history rows
    set nocount on;
    -- The collation counts an emoji as one character.
    declare @text nvarchar(4000) = left(@error collate Latin1_General_100_CI_AS_SC, 2000);

    insert into rowq.history with (rowlock) (
        queue_id, ended_at, message_id, claim_id, attempt, leased_at, outcome, worker_name, error
    )
    select @queue_id, sysutcdatetime(), j.message_id, @claim_id, j.attempt, @leased_at,
           iif(j.is_cancelled = 1, N'cancelled', @outcome), @worker_name,
           iif(j.is_cancelled = 1, null, @text)
    from @messages j
    option (maxdop 1, keepfixed plan);
end
go

create or alter procedure rowq.InternalPurgeHistory
    @queue_id int,
    @days int,
    @limit int,
    @owns_transaction bit,
    @purged int output
as
begin
-- purpose   Delete up to @limit expired attempts; return how many.
-- locks     history rows, skipping locked ones; lane -8, tried
    set nocount on;
    declare @floor bigint, @is_open bit, @since datetime2(6);
    declare @before datetime2(6) = dateadd(day, -@days, sysutcdatetime());

    select @floor = l.floor, @is_open = l.is_open
    from rowq.lane l with (readuncommitted, forceseek)
    where l.queue_id = @queue_id
      and l.lane = -8 /* history */;
    exec rowq.InternalFromMicroseconds @floor, @since output;
    with head as (
        select top (@limit) h.queue_id, h.ended_at, h.message_id, h.claim_id
        from rowq.history h
            with (index (history_pk), rowlock, xlock, readpast, readcommittedlock, forceseek)
        where h.queue_id = @queue_id
          and h.ended_at >= @since
          and h.ended_at < @before
        order by h.ended_at, h.message_id, h.claim_id
    )
    delete from head
    option (maxdop 1, keepfixed plan);
    set @purged = @@rowcount;

    -- From now on maintain moves the floor. Before the first purge no floor is needed.
    if @purged > 0 and @is_open = 0 and @owns_transaction = 1
        update l
        set is_open = 1
        from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where l.queue_id = @queue_id
          and l.lane = -8 /* history */;
end
go
