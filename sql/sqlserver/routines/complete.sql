set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Complete
    @queue_name nvarchar(max),
    @claim_id bigint,
    @message_ids nvarchar(max) = null,
    @results nvarchar(max) = null
as
begin
-- routine   Complete
-- version   1
-- purpose   Finish messages: delete or archive them, and never deliver them again.
-- promise   P04 P08 P21 P22 P23 P24 P26 P32 P37 P49
-- locks     the queue, shared; the claim row; then dedup rows; message rows, rows of groups and of
--           waiting messages, skipping locked ones; new result, history and deferred rows
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5, @begun int, @queue_id int, @archive_days int,
        @result_seconds float, @history_days int, @worker_name nvarchar(400),
        @leased_at datetime2(6), @count int;
    declare @asked table (
        message_id bigint not null,
        place      int not null,
        primary key (message_id, place)
    );
    declare @taken rowq.message_list;

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

            if @message_ids is not null
                exec rowq.InternalCheckIds @message_ids;
            if @claim_id is null
                exec rowq.InternalRefuse N'claim_id is required';
            if @message_ids is not null
                insert into @asked (place, message_id)
                select cast(j.[key] as int), cast(j.value as bigint)
                from openjson(@message_ids) j;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @queue_id output, @archive_days = @archive_days output,
                @result_seconds = @result_seconds output, @history_days = @history_days output;
            if @results is not null
            begin
                set @count = 1;
                if @message_ids is not null
                    select @count = count(*) from @asked;
                exec rowq.InternalCheckResults @results, @count, @result_seconds;
            end;
            -- A refused call must not have written, so in the caller's transaction lock the claim
            -- first. In our own transaction, and without a list, results or history, deleting the
            -- claim below is the fence.
            if @owns_transaction = 0
                or @message_ids is not null
                or @results is not null
                or @history_days > 0
                exec rowq.InternalLockClaim
                    @queue_id, @claim_id, @message_ids, @worker_name = @worker_name output,
                    @leased_at = @leased_at output;
            if @results is not null and @message_ids is null
            begin
                select @count = count(*)
                from rowq.leased l with (forceseek)
                where l.queue_id = @queue_id
                  and l.claim_id = @claim_id
                option (maxdop 1, keepfixed plan);
                if @count > 1
                    exec rowq.InternalRefuse
                        N'results without message_ids requires a claim of exactly one message';
            end;

            -- Writes start here. If the client disconnects, xact_abort rolls back the whole
            -- transaction.
            set xact_abort on;
            if @message_ids is null
                exec rowq.InternalDeleteClaim @queue_id, @claim_id;
            delete l
            output deleted.message_id, deleted.lane, deleted.seq, deleted.attempt
            into @taken (message_id, lane, place, attempt)
            from rowq.leased l with (rowlock, forceseek)
            where l.queue_id = @queue_id
              and l.claim_id = @claim_id
              and (
                  @message_ids is null
                  or exists (select 1 from @asked a where a.message_id = l.message_id)
              )
            option (loop join, maxdop 1, keepfixed plan);
            if @message_ids is not null
                exec rowq.InternalDeleteEmptyClaim @queue_id, @claim_id;
            exec rowq.InternalFinish
                @queue_id, @archive_days, @taken, N'completed', @owns_transaction;
            if @result_seconds > 0
                exec rowq.InternalPushResult
                    @queue_id, @taken, N'completed', null, @results, @message_ids;
            if @history_days > 0
                exec rowq.InternalPushHistory
                    @queue_id, @claim_id, @worker_name, @leased_at, @taken, N'completed';

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
        end catch;
    end;

    -- All messages of the claim in delivery order, or those asked for in that order.
    if @message_ids is null
        select j.message_id, N'completed' as outcome
        from @taken j
        order by j.lane, j.place, j.message_id;
    else
        select a.message_id, iif(j.message_id is null, N'stale', N'completed') as outcome
        from @asked a
        left join @taken j on j.message_id = a.message_id
        order by a.place;
end
go
