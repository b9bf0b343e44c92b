set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.RetryLater
    @queue_name nvarchar(max),
    @claim_id bigint,
    @message_ids nvarchar(max) = null,
    @delay_seconds float = null,
    @error nvarchar(max) = null
as
begin
-- routine   RetryLater
-- version   1
-- purpose   Return messages for another attempt after a delay; without an attempt left they are dead.
-- promise   P08 P10 P34 P37 P47
-- locks     the queue, shared; the claim row; then message rows: waits for a producer that has just
--           named one as a predecessor; delayed, ready or dead rows; for cancelled messages as
--           complete; rows of groups and of waiting messages, skipping locked ones; new history
--           rows
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5, @begun int, @queue_id int, @has_cancels bit, @max_attempts int,
        @history_days int, @worker_name nvarchar(400), @leased_at datetime2(6), @now datetime2(6);
    declare @asked table (
        message_id bigint not null,
        place      int not null,
        primary key (message_id, place)
    );
    declare @taken rowq.message_list;
    declare @ended rowq.message_list;
    declare @alive rowq.message_list;
    declare @worn rowq.message_list;

    -- With xact_abort on, a refusal would make the caller's transaction uncommittable.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction, before the
            -- isolation level changes. @begun only keeps the value out of the results.
            if @owns_transaction = 0
                select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalCheckIds @message_ids;
            if @claim_id is null
                exec rowq.InternalRefuse N'claim_id is required';
            if @delay_seconds not between 0 and 315360000
                exec rowq.InternalCheckRange N'delay_seconds', @delay_seconds, 0, 315360000;
            if @message_ids is not null
                insert into @asked (place, message_id)
                select cast(j.[key] as int), cast(j.value as bigint)
                from openjson(@message_ids) j;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @queue_id output, @max_attempts = @max_attempts output,
                @history_days = @history_days output;
            exec rowq.InternalLockClaim
                @queue_id, @claim_id, @message_ids, @has_cancels = @has_cancels output,
                @worker_name = @worker_name output, @leased_at = @leased_at output;

            -- Writes start here. If the client disconnects, xact_abort rolls back the whole
            -- transaction.
            set xact_abort on;
            delete l
            output deleted.message_id, deleted.lane, deleted.seq, deleted.attempt,
                   deleted.is_cancelled
            into @taken (message_id, lane, place, attempt, is_cancelled)
            from rowq.leased l with (rowlock, forceseek)
            where l.queue_id = @queue_id
              and l.claim_id = @claim_id
              and (
                  @message_ids is null
                  or exists (select 1 from @asked a where a.message_id = l.message_id)
              )
            option (loop join, maxdop 1, keepfixed plan);
            if @message_ids is null
                exec rowq.InternalDeleteClaim @queue_id, @claim_id;
            else
                exec rowq.InternalDeleteEmptyClaim @queue_id, @claim_id;
            if @has_cancels = 1
            begin
                delete j
                output deleted.message_id, deleted.lane, deleted.place, deleted.attempt
                into @ended (message_id, lane, place, attempt)
                from @taken j
                where j.is_cancelled = 1;
                exec rowq.InternalEndCancelled @queue_id, @ended, @owns_transaction;
                if @history_days > 0
                    exec rowq.InternalPushHistory
                        @queue_id, @claim_id, @worker_name, @leased_at, @ended, N'cancelled';
            end;

            -- A hash gives each message its own jitter, the same each time it is computed: rand()
            -- returns one number for all rows, newid() a new one each time.
            set @now = sysutcdatetime();
            -- Without a limit (0) the attempt stops below the highest smallint: the next dequeue
            -- adds one.
            insert into @alive (message_id, lane, place, attempt, due_at)
            select j.message_id, j.lane / 2 * 2 + 1, j.place,
                   iif(j.attempt > 32766, 32766, j.attempt),
                   dateadd(
                       microsecond, cast(round((h.delay - floor(h.delay)) * 1e6, 0) as int),
                       dateadd(second, cast(floor(h.delay) as int), @now)
                   )
            from @taken j
            inner join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
                on m.queue_id = @queue_id
               and m.message_id = j.message_id
               and j.attempt < coalesce(nullif(coalesce(m.max_attempts, @max_attempts), 0), 32768)
            inner join rowq.queue q with (forceseek) on q.queue_id = @queue_id
            cross apply (
                select q.backoff_base_seconds
                       * power(q.backoff_factor, iif(j.attempt > 60, 60, j.attempt - 1))
            ) b (delay)
            cross apply (
                select cast(
                           substring(
                               hashbytes(N'SHA2_256', concat(@now, N' ', j.message_id)), 1, 6
                           ) as bigint
                       ) / 281474976710656e0
            ) s (share)
            cross apply (
                select coalesce(
                    @delay_seconds,
                    iif(b.delay > q.backoff_cap_seconds, q.backoff_cap_seconds, b.delay)
                    * (1 - q.backoff_jitter * s.share)
                )
            ) h (delay)
            option (loop join, force order, maxdop 1, keepfixed plan);
            insert into @worn (message_id, lane, place, attempt)
            select j.message_id, j.lane, j.place, j.attempt
            from @taken j
            where not exists (select 1 from @alive a where a.message_id = j.message_id);
            if exists (select 1 from @alive)
            begin
                exec rowq.InternalPushDelayed @queue_id, @alive, @error;
                if @history_days > 0
                    exec rowq.InternalPushHistory
                        @queue_id, @claim_id, @worker_name, @leased_at, @alive, N'retrying', @error;
            end;
            if exists (select 1 from @worn)
            begin
                exec rowq.InternalPushDead @queue_id, @worn, @error, @owns_transaction;
                if @history_days > 0
                    exec rowq.InternalPushHistory
                        @queue_id, @claim_id, @worker_name, @leased_at, @worn, N'dead', @error;
            end;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- Do not end the caller's transaction. If the call had written, it is already
            -- uncommittable.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- Retry a deadlock (1205), or a lock timeout while taking a group slot, in our own
            -- transaction.
            set @tries_left = iif(
                @owns_transaction = 1
                    and (
                        error_number() = 1205
                        or error_number() = 1222
                            and error_procedure() like N'%InternalTryTakeGroupSlot'
                    ),
                @tries_left - 1, 0
            );
            if @tries_left > 0
                exec rowq.InternalPauseBeforeRetry;
            if @tries_left = 0
                throw;
            delete from @asked;
            delete from @taken;
            delete from @ended;
            delete from @alive;
            delete from @worn;
        end catch;
    end;

    -- All messages of the claim in delivery order, or those asked for in that order.
    if @message_ids is null
        select j.message_id,
               case
                   when j.is_ended = 1 then N'cancelled'
                   when r.message_id is null then N'dead'
                   else N'retrying'
               end as outcome,
               r.due_at
        from (
            select t.message_id, t.lane, t.place, 0 as is_ended
            from @taken t
            union all
            select e.message_id, e.lane, e.place, 1
            from @ended e
        ) j
        left join @alive r on r.message_id = j.message_id
        order by j.lane, j.place, j.message_id;
    else
        select a.message_id,
               case
                   when r.message_id is not null then N'retrying'
                   when j.message_id is not null then N'dead'
                   when e.message_id is not null then N'cancelled'
                   else N'stale'
               end as outcome,
               r.due_at
        from @asked a
        left join @taken j on j.message_id = a.message_id
        left join @alive r on r.message_id = a.message_id
        left join @ended e on e.message_id = a.message_id
        order by a.place;
end
go
