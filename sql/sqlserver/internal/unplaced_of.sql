set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalUnplacedOf
    @part_id int,
    @messages rowq.message_list readonly,
    @unplaced_ids nvarchar(max) output
as
begin
-- routine   InternalUnplacedOf
-- purpose   Return which of the messages are neither ready, at lane and place, nor delayed, blocked or in their groups, and are not on the way; null where there is none.
-- promise   P36
-- locks     rows, shared while they are read, tried only
-- differs   elsewhere one statement with one snapshot looks in all places
    set nocount on;
    -- To learn of each locked message that it is one takes errors, so leave the rest to the next
    -- call after so many.
    declare @most_locked int = 20;
    declare @most_at_once int = 10000;
    declare @size int = @most_at_once;
    declare @last_id bigint = 0;
    declare @next_id bigint;
    declare @count int;
    declare @locked int = 0;
    declare @some table (
        message_id bigint not null primary key,
        lane       smallint not null,
        seq        bigint not null,
        due_at     datetime2(6) null,
        group_key  varbinary(802) null
    );
    declare @unplaced table (message_id bigint not null primary key);
    set @unplaced_ids = null;

    -- A row that another session has locked is error 1222 (nowait): it must not look like one that
    -- is not there. Without xact_abort that error ends no transaction. The option is off only here,
    -- where no table is written, and where nothing waits, so that no client's timeout comes.
    set xact_abort off;
    while @locked < @most_locked
    begin
        delete from @some;
        insert into @some (message_id, lane, seq)
        select top (@size) j.message_id, j.lane, j.place
        from @messages j
        where j.message_id > @last_id
        order by j.message_id;
        set @count = @@rowcount;
        if @count = 0
            break;
        select @next_id = max(s.message_id) from @some s;
        begin try
            -- Look in the order in which a message moves that has no new note for it: from the
            -- blocked to the delayed ones and into its group. So it cannot slip through.
            update s
            set due_at    = m.due_at,
                group_key = convert(varbinary(802), m.group_key + N'.')
            from @some s
            inner join rowq.message m
                with (
                    rowlock, readcommittedlock, nowait, forceseek (message_pk (part_id, message_id))
                )
                on m.part_id = @part_id
               and m.message_id = s.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            delete s
            from @some s
            inner join rowq.blocked b
                with (
                    rowlock, readcommittedlock, nowait, forceseek (blocked_pk (part_id, message_id))
                )
                on b.part_id = @part_id
               and b.message_id = s.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            delete s
            from @some s
            inner join rowq.delayed d
                with (
                    rowlock, readcommittedlock, nowait,
                    forceseek (delayed_pk (part_id, due_at, message_id))
                )
                on d.part_id = @part_id
               and d.due_at = s.due_at
               and d.message_id = s.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            delete s
            from @some s
            inner join rowq.grouped g
                with (
                    rowlock, readcommittedlock, nowait,
                    forceseek (grouped_pk (part_id, group_key, message_id))
                )
                on g.part_id = @part_id
               and g.group_key = s.group_key
               and g.message_id = s.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            delete s
            from @some s
            inner join rowq.ready r
                with (
                    rowlock, readcommittedlock, nowait,
                    forceseek (ready_pk (part_id, lane, seq, message_id))
                )
                on r.part_id = @part_id
               and r.lane = s.lane
               and r.seq = s.seq
               and r.message_id = s.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            insert into @unplaced (message_id)
            select s.message_id from @some s;
        end try
        begin catch
            if error_number() <> 1222
                throw;
            -- Ask for a quarter of them, and so on, to learn which of them it is.
            if @count > 1
            begin
                set @size = (@count + 3) / 4;
                continue;
            end;
            set @locked += 1;
        end catch;
        set @last_id = @next_id;
        set @size = iif(@size * 4 < @most_at_once, @size * 4, @most_at_once);
    end;
    select @unplaced_ids = N'[' + string_agg(cast(u.message_id as nvarchar(max)), N',') + N']'
    from @unplaced u;
end
go
