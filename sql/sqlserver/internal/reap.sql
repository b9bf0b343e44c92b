set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalReap
    @part_id int,
    @max_attempts int,
    @history_days int,
    @limit int,
    @owns_transaction bit,
    @reaped int output,
    @died int output
as
begin
-- routine   InternalReap
-- purpose   Take messages back from expired claims to the front of their lanes, until @limit is passed.
-- promise   P03 P09 P34 P37
-- locks     expired claim rows, passing over locked ones; message rows, tried; as InternalPushDead;
--           for cancelled messages as InternalFinish; new history rows
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @claim_id bigint;
    declare @worker_name nvarchar(400);
    declare @leased_at datetime2(6);
    declare @error nvarchar(500);
    declare @has_cancels bit;
    declare @locked int;
    declare @count int = 0;
    declare @expired table (claim_id bigint not null primary key);
    declare @taken rowq.message_list;
    declare @ended rowq.message_list;
    declare @alive rowq.message_list;
    declare @worn rowq.message_list;
    set @reaped = 0;
    set @died = 0;

    select @claim_id = l.floor - 1
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -1 /* claim */;
    -- Find expired claims with locks that do not last, so that live claims are left alone, then
    -- lock them one by one.
    insert into @expired (claim_id)
    select top (@limit) c.claim_id
    from rowq.claim c with (rowlock, readpast, readcommittedlock, forceseek)
    where c.part_id = @part_id
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

        -- Pass over a claim whose heartbeat or finish came first: its lease is longer by then, or
        -- its row is locked or gone.
        set @worker_name = null;
        select @worker_name = c.worker_name, @has_cancels = c.has_cancels,
               @leased_at = c.leased_at
        from rowq.claim c with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where c.part_id = @part_id
          and c.claim_id = @claim_id
          and c.lease_until <= @now;
        if @@rowcount = 0
            continue;

        if @has_cancels = 1
        begin
            -- Leave the claim alone while a producer is adding a message that waits for one of the
            -- cancelled ones.
            select @locked = count(*)
            from rowq.leased l with (forceseek)
            left join rowq.message m
                with (
                    rowlock, xlock, readpast, readcommittedlock,
                    forceseek (message_pk (part_id, message_id))
                )
                on m.part_id = @part_id
               and m.message_id = l.message_id
            where l.part_id = @part_id
              and l.claim_id = @claim_id
              and l.is_cancelled = 1
              and m.message_id is null
            option (loop join, force order, maxdop 1, keepfixed plan);
            if @locked > 0
                continue;
        end;

        delete l
        output deleted.message_id, deleted.lane, deleted.seq, deleted.attempt,
               deleted.is_cancelled
        into @taken (message_id, lane, place, attempt, is_cancelled)
        from rowq.leased l with (rowlock, forceseek)
        where l.part_id = @part_id
          and l.claim_id = @claim_id
        option (maxdop 1, keepfixed plan);
        exec rowq.InternalDeleteEmptyClaim @part_id, @claim_id;
        set @error = iif(
            @worker_name is null, N'lease expired', concat(N'lease expired: ', @worker_name)
        );
        if @history_days > 0
            exec rowq.InternalPushHistory
                @part_id, @claim_id, @worker_name, @leased_at, @taken, N'lease_expired', @error;
        if @has_cancels = 1
        begin
            delete j
            output deleted.message_id, deleted.lane, deleted.place, deleted.attempt
            into @ended (message_id, lane, place, attempt)
            from @taken j
            where j.is_cancelled = 1;
            set @count += @@rowcount;
            exec rowq.InternalEndCancelled @part_id, @ended, @owns_transaction;
            delete from @ended;
        end;

        insert into @alive (message_id, lane, place, attempt)
        select j.message_id, j.lane, j.place, j.attempt
        from @taken j
        inner join rowq.message m with (forceseek (message_pk (part_id, message_id)))
            on m.part_id = @part_id
           and m.message_id = j.message_id
           and j.attempt < coalesce(m.max_attempts, @max_attempts)
        option (loop join, force order, maxdop 1, keepfixed plan);
        insert into @worn (message_id, lane, place, attempt)
        select j.message_id, j.lane, j.place, j.attempt
        from @taken j
        where not exists (select 1 from @alive a where a.message_id = j.message_id);

        select @reaped += count(*) from @alive;
        select @died += count(*) from @worn;
        if exists (select 1 from @alive)
        begin
            exec rowq.InternalPushReady @part_id, @alive, @is_front = 1;
            exec rowq.InternalNoteError @part_id, @alive, @error, @is_waiting = 0;
        end;
        if exists (select 1 from @worn)
            exec rowq.InternalPushDead
                @part_id, @worn, @error, @owns_transaction, @is_waiting = 0;
        delete from @taken;
        delete from @alive;
        delete from @worn;
    end;
end
go
