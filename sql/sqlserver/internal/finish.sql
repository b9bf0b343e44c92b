set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalFinish
    @part_id int,
    @archive_days int,
    @messages rowq.message_list readonly,
    @state nvarchar(20),
    @may_close bit
as
begin
-- routine   InternalFinish
-- purpose   Remove finished messages, or note them for the archive.
-- promise   P04 P12 P22 P26 P32
-- locks     message rows, tried only; as InternalCutTies; result and new recheck rows
    set nocount on;
    declare @ties rowq.tie_list;
    declare @held rowq.tie_list;

    if @archive_days > 0
    begin
        insert into rowq.finished with (rowlock)
            (part_id, finished_at, message_id, lane, attempt, state)
        select @part_id, sysutcdatetime(), j.message_id, j.lane, j.attempt, @state
        from @messages j
        option (maxdop 1, keepfixed plan);
        -- What waits for one of them and is not committed yet is left to InternalArchive.
        insert into @ties (message_id, dedup_key, group_key, is_awaited)
        select m.message_id, m.dedup_key, iif(j.is_tokenless = 1, null, m.group_key),
               iif(s.predecessor_id is null, null, 1)
        from @messages j
        inner join rowq.message m with (forceseek (message_pk (part_id, message_id)))
            on m.part_id = @part_id
           and m.message_id = j.message_id
        outer apply (
            select top (1) x.predecessor_id
            from rowq.successor x
                with (
                    rowlock, readpast, readcommittedlock,
                    forceseek (successor_pk (part_id, predecessor_id))
                )
            where x.part_id = @part_id
              and x.predecessor_id = m.message_id
        ) s
        where m.dedup_key is not null
           or m.group_key is not null
           or s.predecessor_id is not null
        option (loop join, force order, maxdop 1, keepfixed plan);
        if @@rowcount > 0
            exec rowq.InternalCutTies @part_id, @ties, @may_close;
    end;
    else
    begin
        -- The row is locked exclusively before the look into successor, in this order: after that
        -- nobody comes to wait for the message. A row that a producer holds, which has just named
        -- the message and may never commit, is passed over.
        delete m
        output deleted.message_id, deleted.dedup_key,
               iif(j.is_tokenless = 1, null, deleted.group_key),
               iif(s.predecessor_id is null, null, 1)
        into @ties (message_id, dedup_key, group_key, is_awaited)
        from @messages j
        inner join rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            on m.part_id = @part_id
           and m.message_id = j.message_id
        outer apply (
            select top (1) x.predecessor_id
            from rowq.successor x
                with (
                    rowlock, readcommittedlock, forceseek (successor_pk (part_id, predecessor_id))
                )
            where x.part_id = @part_id
              and x.predecessor_id = m.message_id
        ) s
        option (loop join, force order, maxdop 1, keepfixed plan);
        if @@rowcount < (select count(*) from @messages)
        begin
            -- Such a message has ended all the same. Free what it had, and leave the row, and what
            -- comes to wait for it, to maintain.
            insert into @held (message_id, dedup_key, group_key, is_awaited)
            select m.message_id, m.dedup_key, iif(j.is_tokenless = 1, null, m.group_key),
                   iif(s.predecessor_id is null, null, 1)
            from @messages j
            inner join rowq.message m with (forceseek (message_pk (part_id, message_id)))
                on m.part_id = @part_id
               and m.message_id = j.message_id
            outer apply (
                select top (1) x.predecessor_id
                from rowq.successor x
                    with (
                        rowlock, readpast, readcommittedlock,
                        forceseek (successor_pk (part_id, predecessor_id))
                    )
                where x.part_id = @part_id
                  and x.predecessor_id = m.message_id
            ) s
            where not exists (select 1 from @ties t where t.message_id = j.message_id)
            option (loop join, force order, maxdop 1, keepfixed plan);
            insert into @ties (message_id, dedup_key, group_key, is_awaited)
            select h.message_id, h.dedup_key, h.group_key, h.is_awaited
            from @held h;
            insert into rowq.recheck with (rowlock)
                (part_id, due_at, recheck_id, message_id, predecessor_id)
            select @part_id, sysutcdatetime(), next value for rowq.message_seq, h.message_id,
                   h.message_id
            from @held h
            option (maxdop 1, keepfixed plan);
        end;

        -- Most messages have no tie: then the rest is not worth its price.
        if exists (
            select 1
            from @ties t
            where t.dedup_key is not null
               or t.group_key is not null
               or t.is_awaited = 1
        )
            exec rowq.InternalCutTies @part_id, @ties, @may_close;
    end;

    -- What was completed has results of its own, which Complete keeps.
    if @state <> N'completed'
        exec rowq.InternalPushResult @part_id, @messages, @state;
end
go
