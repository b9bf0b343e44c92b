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
-- locks     message rows; as InternalCutTies; result rows
    set nocount on;
    declare @ties rowq.tie_list;

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
        -- The row is locked exclusively before the look into successor, in this order: that waits
        -- for a producer that has just named the message, and then sees what it has added.
        delete m
        output deleted.message_id, deleted.dedup_key,
               iif(j.is_tokenless = 1, null, deleted.group_key),
               iif(s.predecessor_id is null, null, 1)
        into @ties (message_id, dedup_key, group_key, is_awaited)
        from @messages j
        inner join rowq.message m with (rowlock, xlock, forceseek)
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
