set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPurgeStep
    @part_id int,
    @limit int,
    @owns_transaction bit,
    @stage smallint output,
    @from_key varbinary(802) output,
    @from bigint output,
    @removed int output
as
begin
-- routine   InternalPurgeStep
-- purpose   Delete up to @limit messages that wait for others (stage -2), in groups (-1), of one lane (0 to 19), of the delayed (20) or of the dead (21).
-- promise   P15
-- locks     blocked, grouped, ready, delayed or dead rows, passing over locked ones; message rows
--           and then a token of each group, tried; then as InternalFinish
-- differs   no such helper elsewhere: part of purge_queue
    set nocount on;
    declare @since datetime2(6);
    declare @locked int;
    declare @found table (
        group_key  varbinary(802) not null,
        message_id bigint not null,
        primary key (group_key, message_id)
    );
    declare @held table (group_key varbinary(802) not null primary key);
    declare @taken rowq.message_list;

    -- Go on from the last row and not from the start, where the index still has the rows deleted so
    -- far.
    if @stage = -1
    begin
        insert into @found (group_key, message_id)
        select top (@limit) g.group_key, g.message_id
        from rowq.grouped g with (rowlock, readpast, readcommittedlock, forceseek)
        where g.part_id = @part_id
          and g.group_key >= @from_key
          and (g.group_key > @from_key or g.message_id > @from)
        order by g.group_key, g.message_id
        option (maxdop 1, keepfixed plan);
        set @removed = @@rowcount;
        if @removed = 0
        begin
            set @stage = 0;
            set @from = 0;
            return;
        end;
        select top (1) @from_key = f.group_key, @from = f.message_id
        from @found f
        order by f.group_key desc, f.message_id desc;

        -- Lock the messages before the tokens of their groups. A producer that has just named one
        -- of them, and then enters the group, goes the same way.
        select @locked = count(m.message_id)
        from @found f
        inner join rowq.message m
            with (rowlock, xlock, forceseek (message_pk (part_id, message_id)))
            on m.part_id = @part_id
           and m.message_id = f.message_id
        option (loop join, force order, maxdop 1, keepfixed plan);
        -- Hold a token of each group, so that nobody passes over the messages meanwhile. A group of
        -- which none can be had is left alone.
        insert into @held (group_key)
        select k.group_key
        from (select distinct f.group_key from @found f) k
        cross apply (
            select top (1) t.token_no
            from rowq.message_group t
                with (
                    rowlock, updlock, readpast, readcommittedlock,
                    forceseek (message_group_pk (part_id, group_key))
                )
            where t.part_id = @part_id
              and t.group_key = k.group_key
            order by t.token_no
        ) t
        option (loop join, force order, maxdop 1, keepfixed plan);
        delete g
        output deleted.message_id, deleted.lane, 0, 0, 1
        into @taken (message_id, lane, place, attempt, is_tokenless)
        from @held h
        inner join @found f on f.group_key = h.group_key
        inner join rowq.grouped g with (rowlock, readpast, readcommittedlock, forceseek)
            on g.part_id = @part_id
           and g.group_key = f.group_key
           and g.message_id = f.message_id
        option (loop join, force order, maxdop 1, keepfixed plan);
        set @removed = @@rowcount;
        if @removed > 0
            exec rowq.InternalFinish @part_id, 0, @taken, N'cancelled', @owns_transaction;
        return;
    end;

    if @stage = -2
    begin
        with head as (
            select top (@limit) b.part_id, b.message_id, b.lane
            from rowq.blocked b with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where b.part_id = @part_id
              and b.message_id >= @from
            order by b.message_id
        )
        delete from head
        output deleted.message_id, deleted.lane, deleted.message_id, 0, 1
        into @taken (message_id, lane, place, attempt, is_tokenless)
        option (maxdop 1, keepfixed plan);
    end;
    else if @stage < 20
    begin
        with head as (
            select top (@limit) r.part_id, r.lane, r.seq, r.message_id, r.attempt
            from rowq.ready r with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where r.part_id = @part_id
              and r.lane = @stage
              and r.seq >= @from
            order by r.seq, r.message_id
        )
        delete from head
        output deleted.message_id, deleted.lane, deleted.seq, deleted.attempt
        into @taken (message_id, lane, place, attempt)
        option (maxdop 1, keepfixed plan);
    end;
    else if @stage = 20
    begin
        exec rowq.InternalFromMicroseconds @from, @since output;
        with head as (
            select top (@limit) d.part_id, d.due_at, d.message_id, d.lane, d.attempt, d.group_key
            from rowq.delayed d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where d.part_id = @part_id
              and d.due_at >= @since
            order by d.due_at, d.message_id
        )
        delete from head
        output deleted.message_id, deleted.lane,
               datediff_big(microsecond, '19700101', deleted.due_at), deleted.attempt,
               iif(deleted.group_key is null, 0, 1)
        into @taken (message_id, lane, place, attempt, is_tokenless)
        option (maxdop 1, keepfixed plan);
    end;
    else
    begin
        with head as (
            select top (@limit) d.part_id, d.message_id, d.lane, d.attempt, d.holds_group
            from rowq.dead d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where d.part_id = @part_id
              and d.message_id >= @from
            order by d.message_id
        )
        delete from head
        output deleted.message_id, deleted.lane, deleted.message_id, deleted.attempt,
               iif(deleted.holds_group = 1, 0, 1)
        into @taken (message_id, lane, place, attempt, is_tokenless)
        option (maxdop 1, keepfixed plan);
    end;

    select @removed = count(*), @from = coalesce(max(j.place), 0) from @taken j;
    if @removed = 0
        set @stage += 1;
    else
        exec rowq.InternalFinish @part_id, 0, @taken, N'cancelled', @owns_transaction;
end
go
