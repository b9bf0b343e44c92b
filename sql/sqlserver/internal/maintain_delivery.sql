set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalMaintainDelivery
    @part_id int,
    @limit int,
    @elected bit output,
    @promoted int output,
    @reaped int output,
    @died int output,
    @expired int output,
    @has_due bit output
as
begin
-- routine   InternalMaintainDelivery
-- purpose   Run the part of maintain that deliveries wait for, in the one session that is elected: floors, what was left, reap, expire, promote, starts. @has_due says that a schedule is due.
-- promise   P09 P11 P13 P14 P24 P26 P27 P36 P37
-- locks     the part, shared; rows of lane, passed over when locked; as InternalRecheck, reap,
--           InternalExpire, promote, InternalPurgeStarted; the queue row, tried
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @now datetime2(6) = sysutcdatetime();
    declare @begun int;
    declare @queue_name nvarchar(200);
    declare @max_attempts int;
    declare @archive_days int;
    declare @turn smallint;
    declare @has_recheck bit;
    declare @has_notes bit;
    declare @has_starts bit;
    declare @has_expiry bit;
    declare @history_days int;
    declare @rate_seconds float;
    declare @most_starts int = 10 * @limit;
    declare @solved int;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            if @owns_transaction = 1
                begin transaction;
            set @max_attempts = null;
            set @has_due = 0;
            select @max_attempts = q.max_attempts, @queue_name = q.queue_name,
                   @archive_days = q.archive_days,
                   @has_recheck = q.has_recheck,
                   @has_notes = case
                       when q.has_recheck = 1 then 1
                       when exists (
                           select 1
                           from rowq.recheck r
                               with (rowlock, readpast, readcommittedlock, forceseek)
                           where r.part_id = @part_id
                       ) then 1
                       else 0
                   end,
                   @has_starts = case
                       when q.rate_limit > 0 then 1
                       when exists (
                           select 1
                           from rowq.started s
                               with (rowlock, readpast, readcommittedlock, forceseek)
                           where s.part_id = @part_id
                       ) then 1
                       else 0
                   end,
                   @rate_seconds = iif(q.rate_limit > 0, q.rate_seconds, 0),
                   @history_days = q.history_days,
                   @has_expiry = case
                       when exists (
                           select 1
                           from rowq.lane l with (readuncommitted, forceseek)
                           where l.part_id = @part_id
                             and l.lane = -6 /* expiry */
                             and l.is_open = 1
                       ) then 1
                       when exists (
                           select 1
                           from rowq.expiry e
                               with (rowlock, readpast, readcommittedlock, forceseek)
                           where e.part_id = @part_id
                       ) then 1
                       else 0
                   end,
                   @has_due = case
                       when exists (
                           select 1
                           from rowq.schedule s
                               with (rowlock, readpast, readcommittedlock, forceseek)
                           where s.part_id = @part_id
                             and s.next_run_at <= @now
                       ) then 1
                       else 0
                   end
            from rowq.queue q with (forceseek)
            where q.part_id = @part_id;
            set @queue_name = coalesce(@queue_name, N'');
            exec rowq.InternalLockPartShared @part_id, @queue_name;
            set @promoted = 0;
            set @reaped = 0;
            set @died = 0;
            set @expired = 0;
            -- This row elects the session that runs maintain. A lock by name would not do, because
            -- every user of the database could hold it.
            set @turn = null;
            select @turn = l.lane
            from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where l.part_id = @part_id
              and l.lane = -21 /* election */;
            set @elected = iif(@turn is null, 0, 1);
            if @elected = 0
            begin
                if @owns_transaction = 1
                    commit transaction;
                break;
            end;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            -- From now on maintain keeps the floor of expiry. This is committed before the first
            -- note is forgotten, because whoever moves messages looks for one, or at this.
            if @has_expiry = 1 and @owns_transaction = 1
                update l
                set is_open = 1
                from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                where l.part_id = @part_id
                  and l.lane = -6 /* expiry */
                  and l.is_open = 0;
            -- Put the floors right first, so that the steps below find what was committed late.
            exec rowq.InternalRescanFloors @part_id;
            -- While a floor goes up, guests wait for the lane of guests. So commit here, and elect
            -- once more: only a session that is faster now takes the rest over.
            if @owns_transaction = 1
                commit transaction;
            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalLockPartShared @part_id, @queue_name;
            set @turn = null;
            select @turn = l.lane
            from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where l.part_id = @part_id
              and l.lane = -21 /* election */;
            if @turn is not null
            begin
                if @has_notes = 1
                    exec rowq.InternalRecheck
                        @part_id, @limit, @owns_transaction, @solved output;
                exec rowq.InternalReap
                    @part_id, @max_attempts, @history_days, @limit, @owns_transaction,
                    @reaped output, @died output;
                -- Nobody can say how long the caller's transaction will hold what is withdrawn.
                if @has_expiry = 1
                    and @owns_transaction = 1
                    and exists (
                        select 1
                        from rowq.lane l with (readuncommitted, forceseek)
                        where l.part_id = @part_id
                          and l.lane = -6 /* expiry */
                          and l.is_open = 1
                    )
                    exec rowq.InternalExpire @part_id, @archive_days, @limit, @expired output;
                -- Promote last: for a message that waits in its group then, it holds a token by an
                -- update lock, which the steps before would have to convert.
                exec rowq.InternalPromote @part_id, @limit, @owns_transaction, @promoted output;
                if @has_starts = 1
                    exec rowq.InternalPurgeStarted
                        @part_id, @rate_seconds, @most_starts, @owns_transaction;
                if @has_notes > @has_recheck and @owns_transaction = 1
                begin
                    -- From now on a dequeue that finds nothing looks at recheck, too, and the floor
                    -- of recheck is kept.
                    update l
                    set is_open = 1
                    from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                    where l.part_id = @part_id
                      and l.lane = -4 /* deferred */;
                    update q
                    set has_recheck = 1
                    from rowq.queue q
                        with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                    where q.part_id = @part_id;
                end;
            end;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again. So does one that came to a group at the same moment as a producer.
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
        end catch;
    end;
end
go
