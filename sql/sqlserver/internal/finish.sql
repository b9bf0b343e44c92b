-- Finish: how messages leave a claim, and how they end.
--
-- The claim is the fence. A call that finishes messages first deletes the claim, or takes them out
-- of it; a second session finds nothing there, and its messages are stale. reap does the same for
-- expired claims. An ended message is deleted, or kept in finished for the archive, and its links
-- are released in the same transaction: dedup key, group slot, successors. A dead message moves to
-- dead and keeps its row. An end does not wait for a producer that has locked the message's row:
-- maintain deletes the row by a row of deferred.
--
-- But fail_now, retry_later, and release with a delay wait for a producer that has just named one
-- of their messages: only the row can store the error and the time.
--
--   complete, retry_later -> delete_claim, delete_empty_claim
--   dequeue -> complete_claim -> delete_empty_claim, finish
--   complete, discard_dead, purge_step, ... -> finish -> release_links
--   block, propagate_deaths -> release_links
--   complete, retry_later, extend_lease -> lock_claim
--   retry_later -> push_dead -> record_error, release_links
--   fail_now, release -> fail_or_release -> lock_claim, delete_claim, delete_empty_claim,
--       push_dead
--   run_deferred -> end_held
--   maintain_delivery -> reap -> delete_empty_claim, record_error, push_dead
--
-- Writes claim, dead, dedup, finished, leased, message, deferred. Only reads lane, queue_lock,
-- queue, successor.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalDeleteClaim
    @queue_id int,
    @claim_id bigint
as
begin
-- purpose   Delete a claim that all messages leave; raise an error if it is gone.
-- locks     the claim row
-- errors    RQ721
    set nocount on;
    declare @text nvarchar(2048) = concat(
        N'RQ721 stale_claim: claim ', @claim_id, N' no longer holds any messages'
    );

    delete c
    from rowq.claim c with (rowlock, forceseek)
    where c.queue_id = @queue_id
      and c.claim_id = @claim_id
    option (maxdop 1, keepfixed plan);
    if @@rowcount = 0
        throw 52721, @text, 1;
end
go

create or alter procedure rowq.InternalDeleteEmptyClaim
    @queue_id int,
    @claim_id bigint
as
begin
-- purpose   Delete a claim that holds no messages.
-- locks     the claim row
    set nocount on;
    delete c
    from rowq.claim c with (rowlock, forceseek)
    where c.queue_id = @queue_id
      and c.claim_id = @claim_id
      and not exists (
          select 1
          from rowq.leased l with (forceseek)
          where l.queue_id = @queue_id
            and l.claim_id = @claim_id
      )
    option (loop join, maxdop 1, keepfixed plan);
end
go

create or alter procedure rowq.InternalCompleteClaim
    @queue_id int,
    @claim_id bigint,
    @message_ids nvarchar(max),
    @results nvarchar(max),
    @owns_transaction bit,
    @stale_ids nvarchar(max) output
as
begin
-- purpose   Complete messages for complete_and_dequeue; return the stale ones, [null] for a lost claim.
-- locks     as complete
-- errors    RQ711
-- differs   complete has this code once more, because a procedure cannot read another's result set
    set nocount on;
    declare @archive_days int, @result_seconds float, @history_days int, @count int = 1,
        @worker_name nvarchar(400), @leased_at datetime2(6);
    declare @asked table (
        message_id bigint not null,
        place      int not null,
        primary key (message_id, place)
    );
    declare @taken rowq.message_list;
    set @stale_ids = null;

    if @message_ids is not null
    begin
        exec rowq.InternalCheckIds @message_ids;
        insert into @asked (place, message_id)
        select cast(j.[key] as int), cast(j.value as bigint)
        from openjson(@message_ids) j;
    end;
    select @archive_days = q.archive_days, @result_seconds = q.result_seconds,
           @history_days = q.history_days
    from rowq.queue q with (forceseek)
    where q.queue_id = @queue_id;
    if @results is not null
    begin
        if @message_ids is not null
            select @count = count(*) from @asked;
        exec rowq.InternalCheckResults @results, @count, @result_seconds;
    end;

    -- The claim row is locked before any other row.
    select @worker_name = c.worker_name, @leased_at = c.leased_at
    from rowq.claim c with (rowlock, updlock, forceseek)
    where c.queue_id = @queue_id
      and c.claim_id = @claim_id;
    if @leased_at is null
    begin
        set @stale_ids = coalesce(@message_ids, N'[null]');
        return;
    end;
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

    -- Writes start here. If the client disconnects, xact_abort rolls back the whole transaction. In
    -- the caller's transaction it is off again while the dequeue counts, so that a lock timeout
    -- there keeps the completion.
    set xact_abort on;
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
    exec rowq.InternalDeleteEmptyClaim @queue_id, @claim_id;
    exec rowq.InternalFinish @queue_id, @archive_days, @taken, N'completed', @owns_transaction;
    if @result_seconds > 0
        exec rowq.InternalPushResult
            @queue_id, @taken, N'completed', null, @results, @message_ids;
    if @history_days > 0
        exec rowq.InternalPushHistory
            @queue_id, @claim_id, @worker_name, @leased_at, @taken, N'completed';

    -- Few calls have stale messages: the others save a sort, and the memory for it.
    if exists (
        select 1
        from @asked a
        where not exists (select 1 from @taken j where j.message_id = a.message_id)
    )
        select @stale_ids = N'[' + string_agg(cast(a.message_id as nvarchar(max)), N',')
                   within group (order by a.place) + N']'
        from @asked a
        where not exists (select 1 from @taken j where j.message_id = a.message_id);
end
go

create or alter procedure rowq.InternalFinish
    @queue_id int,
    @archive_days int,
    @messages rowq.message_list readonly,
    @state nvarchar(20),
    @may_close bit
as
begin
-- purpose   Delete ended messages or pass them to the archive, and release their links.
-- locks     message rows, skipping locked ones; as InternalReleaseLinks; result and new deferred
--           rows
    set nocount on;
    declare @links rowq.link_list;
    declare @held rowq.link_list;

    if @archive_days > 0
    begin
        insert into rowq.finished with (rowlock)
            (queue_id, finished_at, message_id, lane, attempt, state)
        select @queue_id, sysutcdatetime(), j.message_id, j.lane, j.attempt, @state
        from @messages j
        option (maxdop 1, keepfixed plan);
        -- InternalArchive releases successors that are not committed yet.
        insert into @links (message_id, dedup_key, group_key, is_awaited)
        select m.message_id, m.dedup_key, iif(j.is_without_slot = 1, null, m.group_key),
               iif(s.predecessor_id is null, null, 1)
        from @messages j
        inner join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
            on m.queue_id = @queue_id
           and m.message_id = j.message_id
        outer apply (
            select top (1) x.predecessor_id
            from rowq.successor x
                with (
                    rowlock, readpast, readcommittedlock,
                    forceseek (successor_pk (queue_id, predecessor_id))
                )
            where x.queue_id = @queue_id
              and x.predecessor_id = m.message_id
        ) s
        where m.dedup_key is not null
           or m.group_key is not null
           or s.predecessor_id is not null
        option (loop join, force order, maxdop 1, keepfixed plan);
        if @@rowcount > 0
            exec rowq.InternalReleaseLinks @queue_id, @links, @may_close;
    end;
    else
    begin
        -- The row is locked exclusively before successor is read: after that no producer can name
        -- the message as a predecessor. A row locked by a producer that has just named it, and may
        -- never commit, is skipped.
        delete m
        output deleted.message_id, deleted.dedup_key,
               iif(j.is_without_slot = 1, null, deleted.group_key),
               iif(s.predecessor_id is null, null, 1)
        into @links (message_id, dedup_key, group_key, is_awaited)
        from @messages j
        inner join rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            on m.queue_id = @queue_id
           and m.message_id = j.message_id
        outer apply (
            select top (1) x.predecessor_id
            from rowq.successor x
                with (
                    rowlock, readcommittedlock, forceseek (successor_pk (queue_id, predecessor_id))
                )
            where x.queue_id = @queue_id
              and x.predecessor_id = m.message_id
        ) s
        option (loop join, force order, maxdop 1, keepfixed plan);
        if @@rowcount < (select count(*) from @messages)
        begin
            -- Such a message has ended. Release its links, and defer its row and its new
            -- successors.
            insert into @held (message_id, dedup_key, group_key, is_awaited)
            select m.message_id, m.dedup_key, iif(j.is_without_slot = 1, null, m.group_key),
                   iif(s.predecessor_id is null, null, 1)
            from @messages j
            inner join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
                on m.queue_id = @queue_id
               and m.message_id = j.message_id
            outer apply (
                select top (1) x.predecessor_id
                from rowq.successor x
                    with (
                        rowlock, readpast, readcommittedlock,
                        forceseek (successor_pk (queue_id, predecessor_id))
                    )
                where x.queue_id = @queue_id
                  and x.predecessor_id = m.message_id
            ) s
            where not exists (select 1 from @links t where t.message_id = j.message_id)
            option (loop join, force order, maxdop 1, keepfixed plan);
            insert into @links (message_id, dedup_key, group_key, is_awaited)
            select h.message_id, h.dedup_key, h.group_key, h.is_awaited
            from @held h;
            insert into rowq.deferred with (rowlock)
                (queue_id, due_at, deferred_id, message_id, predecessor_id)
            select @queue_id, sysutcdatetime(), next value for rowq.message_seq, h.message_id,
                   h.message_id
            from @held h
            option (maxdop 1, keepfixed plan);
        end;

        -- Most messages have no links: skip the rest.
        if exists (
            select 1
            from @links t
            where t.dedup_key is not null
               or t.group_key is not null
               or t.is_awaited = 1
        )
            exec rowq.InternalReleaseLinks @queue_id, @links, @may_close;
    end;

    -- Complete stores the results of completed messages itself.
    if @state <> N'completed'
        exec rowq.InternalPushResult @queue_id, @messages, @state;
end
go

create or alter procedure rowq.InternalReleaseLinks
    @queue_id int,
    @links rowq.link_list readonly,
    @may_close bit
as
begin
-- purpose   Release the dedup keys, group slots and successors of ended messages.
-- locks     dedup rows; as InternalReleaseGroupSlots and InternalResumeSuccessors; new deferred
--           rows
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @awaited_id bigint = 0;
    declare @leaving rowq.message_list;

    delete k
    from @links j
    inner join rowq.dedup k with (rowlock, forceseek)
        on k.queue_id = @queue_id
       and k.dedup_key = convert(varbinary(802), j.dedup_key + N'.')
       and k.message_id = j.message_id
    where j.dedup_key is not null
    option (loop join, force order, maxdop 1, keepfixed plan);

    insert into @leaving (message_id, lane, place, attempt, group_key)
    select j.message_id, 0, 0, 0, convert(varbinary(802), j.group_key + N'.')
    from @links j
    where j.group_key is not null;
    if @@rowcount > 0
        exec rowq.InternalReleaseGroupSlots @queue_id, @leaving, @may_close;

    while 1 = 1
    begin
        select top (1) @awaited_id = j.message_id
        from @links j
        where j.message_id > @awaited_id
          and j.is_awaited = 1
        order by j.message_id;
        if @@rowcount = 0
            break;
        -- Many messages may have ended, each with a thousand successors: defer the rest after 500
        -- ms.
        if datediff(millisecond, @now, sysutcdatetime()) > 500
        begin
            insert into rowq.deferred with (rowlock) (queue_id, due_at, deferred_id, predecessor_id)
            select @queue_id, sysutcdatetime(), next value for rowq.message_seq, j.message_id
            from @links j
            where j.message_id >= @awaited_id
              and j.is_awaited = 1
            option (maxdop 1, keepfixed plan);
            break;
        end;
        exec rowq.InternalResumeSuccessors @queue_id, @awaited_id, @may_close;
    end;
end
go

create or alter procedure rowq.InternalLockClaim
    @queue_id int,
    @claim_id bigint,
    @message_ids nvarchar(max),
    @held_until datetime2(6) = null output,
    @has_cancels bit = null output,
    @worker_name nvarchar(400) = null output,
    @leased_at datetime2(6) = null output
as
begin
-- purpose   Lock a claim; raise an error if it is gone and no list of messages is passed.
-- locks     the claim row, before any other row
-- errors    RQ721
    set nocount on;
    declare @text nvarchar(2048) = concat(
        N'RQ721 stale_claim: claim ', @claim_id, N' no longer holds any messages'
    );
    set @held_until = null;
    set @has_cancels = null;
    set @worker_name = null;
    set @leased_at = null;

    select @held_until = c.lease_until, @has_cancels = c.has_cancels,
           @worker_name = c.worker_name, @leased_at = c.leased_at
    from rowq.claim c with (rowlock, updlock, forceseek)
    where c.queue_id = @queue_id
      and c.claim_id = @claim_id;
    if @held_until is null and @message_ids is null
        throw 52721, @text, 1;
end
go

create or alter procedure rowq.InternalPushDead
    @queue_id int,
    @messages rowq.message_list readonly,
    @error nvarchar(max),
    @may_close bit,
    @is_waiting bit = 1
as
begin
-- purpose   Make messages dead with their last error, and propagate the deaths to their successors.
-- locks     new dead and result rows; message rows; as InternalReleaseLinks and
--           InternalPropagateDeaths
    set nocount on;
    declare @recorded int, @is_awaited bit = 0, @ids nvarchar(max), @has_links bit, @holds bit = 0;
    declare @links rowq.link_list;

    -- A row whose error is stored is locked: no producer can name it as a predecessor any more. If
    -- a row is skipped, a producer is adding a successor.
    exec rowq.InternalRecordError @queue_id, @messages, @error, @is_waiting, @recorded output;
    select @is_awaited = 1
    from (select count(*) as messages from @messages) j
    where j.messages > @recorded;
    insert into @links (message_id, dedup_key, group_key, is_awaited)
    select m.message_id, m.dedup_key, m.group_key, iif(s.predecessor_id is null, null, 1)
    from @messages j
    inner join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
        on m.queue_id = @queue_id
       and m.message_id = j.message_id
    outer apply (
        select top (1) x.predecessor_id
        from rowq.successor x
            with (
                rowlock, readpast, readcommittedlock,
                forceseek (successor_pk (queue_id, predecessor_id))
            )
        where x.queue_id = @queue_id
          and x.predecessor_id = m.message_id
    ) s
    where m.dedup_key is not null
       or m.group_key is not null
       or s.predecessor_id is not null
    option (loop join, force order, maxdop 1, keepfixed plan);
    set @has_links = iif(@@rowcount > 0, 1, 0);
    if @has_links = 1
        select @holds = iif(q.group_after_dead = N'hold', 1, 0)
        from rowq.queue q with (forceseek)
        where q.queue_id = @queue_id;

    insert into rowq.dead with (rowlock) (queue_id, message_id, lane, attempt, died_at, holds_slot)
    select @queue_id, j.message_id, j.lane, j.attempt, sysutcdatetime(),
           iif(@holds = 1 and t.group_key is not null, 1, null)
    from @messages j
    left join @links t on t.message_id = j.message_id
    option (loop join, maxdop 1, keepfixed plan);
    exec rowq.InternalPushResult @queue_id, @messages, N'dead', @error;

    if @has_links = 1
    begin
        -- A dead message has not ended.
        select @is_awaited = 1 from @links t where t.is_awaited = 1;
        update @links
        set group_key = iif(@holds = 1, null, group_key),
            is_awaited = null
        where @holds = 1 or is_awaited = 1;
        exec rowq.InternalReleaseLinks @queue_id, @links, @may_close;
    end;
    if @is_awaited = 1
    begin
        select @ids = N'[' + string_agg(cast(j.message_id as nvarchar(max)), N',') + N']'
        from @messages j;
        exec rowq.InternalPropagateDeaths @queue_id, @ids, null, @may_close;
    end;
end
go

create or alter procedure rowq.InternalRecordError
    @queue_id int,
    @messages rowq.message_list readonly,
    @error nvarchar(max),
    @is_waiting bit = 1,
    @recorded int = null output
as
begin
-- purpose   Store the last error of messages; return how many. Wait for producers if @is_waiting.
-- locks     message rows: waits if @is_waiting, else skips locked ones
-- differs   the last error is stored with the body, not with the state
    set nocount on;
    -- This collation counts an emoji as 1 character; others count 2.
    declare @text nvarchar(4000) = left(@error collate Latin1_General_100_CI_AS_SC, 2000);

    if @is_waiting = 1
        update m
        set last_error = @text
        from @messages j
        inner join rowq.message m with (rowlock, xlock, forceseek)
            on m.queue_id = @queue_id
           and m.message_id = j.message_id
        option (loop join, force order, maxdop 1, keepfixed plan);
    else
        update m
        set last_error = @text
        from @messages j
        inner join rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            on m.queue_id = @queue_id
           and m.message_id = j.message_id
        option (loop join, force order, maxdop 1, keepfixed plan);
    set @recorded = @@rowcount;
end
go

create or alter procedure rowq.InternalFailOrRelease
    @queue_name nvarchar(max),
    @claim_id bigint,
    @message_ids nvarchar(max),
    @outcome nvarchar(20),
    @error nvarchar(max) = null,
    @delay_seconds float = null
as
begin
-- purpose   Take messages from a claim; make them dead, released or snoozed; end cancelled ones.
-- locks     the queue, shared; the claim row; then dead, message and dedup rows, or new ready or
--           delayed rows; for cancelled messages as complete; rows of groups and of waiting
--           messages, skipping locked ones; new history rows
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5, @begun int, @queue_id int, @has_cancels bit, @history_days int,
        @worker_name nvarchar(400), @leased_at datetime2(6), @due_at datetime2(6);
    declare @asked table (
        message_id bigint not null,
        place      int not null,
        primary key (message_id, place)
    );
    declare @taken rowq.message_list;
    declare @ended rowq.message_list;
    declare @snoozed rowq.message_list;

    -- With xact_abort on, a refusal would make the caller's transaction uncommittable.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Begin the caller's transaction, if it begins here, at the caller's isolation level.
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
                @queue_name, @queue_id output, @history_days = @history_days output;
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
            if @history_days > 0
                exec rowq.InternalPushHistory
                    @queue_id, @claim_id, @worker_name, @leased_at, @taken, @outcome, @error;
            if @has_cancels = 1
            begin
                delete j
                output deleted.message_id, deleted.lane, deleted.place, deleted.attempt
                into @ended (message_id, lane, place, attempt)
                from @taken j
                where j.is_cancelled = 1;
                exec rowq.InternalEndCancelled @queue_id, @ended, @owns_transaction;
            end;
            if @outcome = N'dead'
                exec rowq.InternalPushDead @queue_id, @taken, @error, @owns_transaction;
            else if @outcome = N'released'
                exec rowq.InternalPushReady @queue_id, @taken, @is_front = 1, @spent = 1;
            else
            begin
                set @due_at = dateadd(
                    microsecond,
                    cast(round((@delay_seconds - floor(@delay_seconds)) * 1e6, 0) as int),
                    dateadd(second, cast(floor(@delay_seconds) as int), sysutcdatetime())
                );
                insert into @snoozed (message_id, lane, place, attempt, due_at)
                select j.message_id, j.lane / 2 * 2 + 1, j.place, j.attempt - 1, @due_at
                from @taken j;
                exec rowq.InternalPushDelayed @queue_id, @snoozed, @keeps_error = 1;
            end;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
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
            delete from @snoozed;
        end catch;
    end;

    -- All messages of the claim in delivery order, or those asked for in that order.
    if @message_ids is null
        insert into @asked (message_id, place)
        select j.message_id, row_number() over (order by j.lane, j.place, j.message_id)
        from (
            select t.message_id, t.lane, t.place
            from @taken t
            union all
            select e.message_id, e.lane, e.place
            from @ended e
        ) j;
    if @outcome = N'dead'
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
    else
        select a.message_id,
               case
                   when j.message_id is not null then @outcome
                   when e.message_id is not null then N'cancelled'
                   else N'stale'
               end as outcome,
               iif(j.message_id is null, null, @due_at) as due_at
        from @asked a
        left join @taken j on j.message_id = a.message_id
        left join @ended e on e.message_id = a.message_id
        order by a.place;
end
go

create or alter procedure rowq.InternalEndHeld
    @queue_id int,
    @message_id bigint,
    @is_done bit output
as
begin
-- purpose   Delete an ended message whose row was locked, and resume its new successors.
-- locks     the message row, skipped if locked; as InternalResumeSuccessors and
--           InternalAwaitPredecessor
    set nocount on;
    declare @ids nvarchar(max) = concat(N'[', @message_id, N']');
    declare @state nvarchar(20), @predecessor_id bigint, @remaining_ids nvarchar(max);
    set @is_done = 1;

    delete m
    from rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where m.queue_id = @queue_id
      and m.message_id = @message_id
    option (maxdop 1, keepfixed plan);
    if @@rowcount = 1
        exec rowq.InternalResumeSuccessors @queue_id, @message_id, @may_join = 1;
    else
    begin
        -- It is still locked, or was deleted.
        exec rowq.InternalAwaitPredecessor
            @queue_id, @ids, null, @state output, @predecessor_id output, @remaining_ids output;
        set @is_done = iif(@state = N'free', 1, 0);
    end;
end
go

create or alter procedure rowq.InternalReap
    @queue_id int,
    @max_attempts int,
    @history_days int,
    @limit int,
    @owns_transaction bit,
    @reaped int output,
    @died int output
as
begin
-- purpose   Return the messages of expired claims to the front of their lanes, until @limit is reached.
-- locks     expired claim rows and message rows, skipping locked ones; as InternalPushDead; for
--           cancelled messages as InternalFinish; new history rows
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @claim_id bigint, @worker_name nvarchar(400), @leased_at datetime2(6),
        @error nvarchar(500), @has_cancels bit, @locked int, @count int = 0, @left int;
    declare @expired table (claim_id bigint not null primary key);
    declare @taken rowq.message_list;
    declare @ended rowq.message_list;
    declare @alive rowq.message_list;
    declare @worn rowq.message_list;
    set @reaped = 0;
    set @died = 0;

    select @claim_id = l.floor - 1
    from rowq.lane l with (readuncommitted, forceseek)
    where l.queue_id = @queue_id
      and l.lane = -1 /* claim */;
    -- Find expired claims with short locks, so that live claims are not locked, then lock them one
    -- by one.
    insert into @expired (claim_id)
    select top (@limit) c.claim_id
    from rowq.claim c with (rowlock, readpast, readcommittedlock, forceseek)
    where c.queue_id = @queue_id
      and c.claim_id > @claim_id
      and c.lease_until <= @now
    order by c.claim_id
    option (maxdop 1, keepfixed plan);

    while @reaped + @died + @count < @limit
    begin
        set @claim_id = null;
        select top (1) @claim_id = e.claim_id from @expired e order by e.claim_id;
        if @claim_id is null
            break;
        delete from @expired where claim_id = @claim_id;

        -- Skip a claim whose heartbeat or finish came first: its lease is longer, or its row is
        -- locked or gone.
        set @worker_name = null;
        select @worker_name = c.worker_name, @has_cancels = c.has_cancels,
               @leased_at = c.leased_at
        from rowq.claim c with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where c.queue_id = @queue_id
          and c.claim_id = @claim_id
          and c.lease_until <= @now;
        if @@rowcount = 0
            continue;

        if @has_cancels = 1
        begin
            -- Skip a claim while a producer is adding a successor to a cancelled message of it.
            select @locked = count(*)
            from rowq.leased l with (forceseek)
            left join rowq.message m
                with (
                    rowlock, xlock, readpast, readcommittedlock,
                    forceseek (message_pk (queue_id, message_id))
                )
                on m.queue_id = @queue_id
               and m.message_id = l.message_id
            where l.queue_id = @queue_id
              and l.claim_id = @claim_id
              and l.is_cancelled = 1
              and m.message_id is null
            option (loop join, force order, maxdop 1, keepfixed plan);
            if @locked > 0
                continue;
        end;

        -- The messages beyond the limit stay in the claim, still expired.
        set @left = @limit - @reaped - @died - @count;
        with reaped as (
            select top (@left) l.message_id, l.lane, l.seq, l.attempt, l.is_cancelled
            from rowq.leased l with (rowlock, forceseek)
            where l.queue_id = @queue_id
              and l.claim_id = @claim_id
            order by l.queue_id, l.claim_id, l.lane, l.seq, l.message_id
        )
        delete reaped
        output deleted.message_id, deleted.lane, deleted.seq, deleted.attempt,
               deleted.is_cancelled
        into @taken (message_id, lane, place, attempt, is_cancelled)
        option (maxdop 1, keepfixed plan);
        exec rowq.InternalDeleteEmptyClaim @queue_id, @claim_id;
        set @error = iif(
            @worker_name is null, N'lease expired', concat(N'lease expired: ', @worker_name)
        );
        if @history_days > 0
            exec rowq.InternalPushHistory
                @queue_id, @claim_id, @worker_name, @leased_at, @taken, N'lease_expired', @error;
        if @has_cancels = 1
        begin
            delete j
            output deleted.message_id, deleted.lane, deleted.place, deleted.attempt
            into @ended (message_id, lane, place, attempt)
            from @taken j
            where j.is_cancelled = 1;
            set @count += @@rowcount;
            exec rowq.InternalEndCancelled @queue_id, @ended, @owns_transaction;
            delete from @ended;
        end;

        -- Without a limit (0) the attempt stops below the highest smallint: the next dequeue adds
        -- one.
        insert into @alive (message_id, lane, place, attempt)
        select j.message_id, j.lane, j.place, iif(j.attempt > 32766, 32766, j.attempt)
        from @taken j
        inner join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
            on m.queue_id = @queue_id
           and m.message_id = j.message_id
           and j.attempt < coalesce(nullif(coalesce(m.max_attempts, @max_attempts), 0), 32768)
        option (loop join, force order, maxdop 1, keepfixed plan);
        insert into @worn (message_id, lane, place, attempt)
        select j.message_id, j.lane, j.place, j.attempt
        from @taken j
        where not exists (select 1 from @alive a where a.message_id = j.message_id);

        select @reaped += count(*) from @alive;
        select @died += count(*) from @worn;
        if exists (select 1 from @alive)
        begin
            exec rowq.InternalPushReady @queue_id, @alive, @is_front = 1;
            exec rowq.InternalRecordError @queue_id, @alive, @error, @is_waiting = 0;
        end;
        if exists (select 1 from @worn)
            exec rowq.InternalPushDead
                @queue_id, @worn, @error, @owns_transaction, @is_waiting = 0;
        delete from @taken;
        delete from @alive;
        delete from @worn;
    end;
end
go
