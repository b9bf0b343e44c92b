set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalGiveUpMessages
    @queue_name nvarchar(max),
    @claim_id bigint,
    @message_ids nvarchar(max),
    @outcome nvarchar(20),
    @error nvarchar(max) = null
as
begin
-- routine   InternalGiveUpMessages
-- purpose   Take messages from a claim, end those that were cancelled, and make the others dead or released, as @outcome says; returns the rows.
-- promise   P08 P10 P34 P37
-- locks     the part, shared; the claim row; then dead, message and dedup rows, or new ready rows;
--           for cancelled messages as complete; rows of groups and of messages that wait, tried
--           only; new history rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   no such helper elsewhere: only here both routines need a transaction of their own
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @has_cancels bit;
    declare @history_days int;
    declare @worker_name nvarchar(400);
    declare @leased_at datetime2(6);
    declare @asked table (
        message_id bigint not null,
        place      int not null,
        primary key (message_id, place)
    );
    declare @taken rowq.message_list;
    declare @ended rowq.message_list;

    -- A refusal must not doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- If the caller's transaction begins here, then at the caller's isolation level.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalCheckIds @message_ids;
            if @claim_id is null
                exec rowq.InternalRefuse N'claim_id is missing';
            if @message_ids is not null
                insert into @asked (place, message_id)
                select cast(j.[key] as int), cast(j.value as bigint)
                from openjson(@message_ids) j;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @part_id output, @history_days = @history_days output;
            exec rowq.InternalLockClaim
                @part_id, @claim_id, @message_ids, @has_cancels = @has_cancels output,
                @worker_name = @worker_name output, @leased_at = @leased_at output;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            delete l
            output deleted.message_id, deleted.lane, deleted.seq, deleted.attempt,
                   deleted.is_cancelled
            into @taken (message_id, lane, place, attempt, is_cancelled)
            from rowq.leased l with (rowlock, forceseek)
            where l.part_id = @part_id
              and l.claim_id = @claim_id
              and (
                  @message_ids is null
                  or exists (select 1 from @asked a where a.message_id = l.message_id)
              )
            option (loop join, maxdop 1, keepfixed plan);
            if @message_ids is null
                exec rowq.InternalDeleteClaim @part_id, @claim_id;
            else
                exec rowq.InternalDeleteEmptyClaim @part_id, @claim_id;
            if @history_days > 0
                exec rowq.InternalPushHistory
                    @part_id, @claim_id, @worker_name, @leased_at, @taken, @outcome, @error;
            if @has_cancels = 1
            begin
                delete j
                output deleted.message_id, deleted.lane, deleted.place, deleted.attempt
                into @ended (message_id, lane, place, attempt)
                from @taken j
                where j.is_cancelled = 1;
                exec rowq.InternalEndCancelled @part_id, @ended, @owns_transaction;
            end;
            if @outcome = N'dead'
                exec rowq.InternalPushDead @part_id, @taken, @error, @owns_transaction;
            else
                exec rowq.InternalPushReady @part_id, @taken, @is_front = 1, @spent = 1;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- The victim of a deadlock, with nothing else to lose, begins again. So does a call
            -- that came to a group at the same moment as a producer.
            set @tries_left = iif(
                @owns_transaction = 1
                    and (
                        error_number() = 1205
                        or error_number() = 1222
                            and error_procedure() like N'%InternalTryEnterGroup'
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
        end catch;
    end;

    -- All that the claim held, in the order of delivery; or what was asked for, in that order.
    if @message_ids is null
        select j.message_id, j.outcome
        from (
            select t.message_id, t.lane, t.place, @outcome as outcome
            from @taken t
            union all
            select e.message_id, e.lane, e.place, N'cancelled'
            from @ended e
        ) j
        order by j.lane, j.place, j.message_id;
    else
        select a.message_id,
               case
                   when j.message_id is not null then @outcome
                   when e.message_id is not null then N'cancelled'
                   else N'stale'
               end as outcome
        from @asked a
        left join @taken j on j.message_id = a.message_id
        left join @ended e on e.message_id = a.message_id
        order by a.place;
end
go
