set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPushDead
    @part_id int,
    @messages rowq.message_list readonly,
    @error nvarchar(max),
    @may_close bit,
    @is_waiting bit = 1
as
begin
-- routine   InternalPushDead
-- purpose   Keep messages as dead with the last error; free their dedup keys, and their groups unless they are to wait; then what waits for them does as it asked. @is_waiting is that of InternalNoteError.
-- promise   P10 P12 P21 P27 P32
-- locks     new dead and result rows; message rows; as InternalCutTies and InternalFollowDeaths
    set nocount on;
    declare @noted int;
    declare @is_awaited bit = 0;
    declare @ids nvarchar(max);
    declare @has_ties bit;
    declare @holds bit = 0;
    declare @ties rowq.tie_list;

    -- Where the error is noted, the row is locked, and nobody comes to wait for the message any
    -- more. Where it is not, a producer is adding a message that waits.
    exec rowq.InternalNoteError @part_id, @messages, @error, @is_waiting, @noted output;
    select @is_awaited = 1
    from (select count(*) as messages from @messages) j
    where j.messages > @noted;
    insert into @ties (message_id, dedup_key, group_key, is_awaited)
    select m.message_id, m.dedup_key, m.group_key, iif(s.predecessor_id is null, null, 1)
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
    set @has_ties = iif(@@rowcount > 0, 1, 0);
    if @has_ties = 1
        select @holds = iif(q.group_after_dead = N'hold', 1, 0)
        from rowq.queue q with (forceseek)
        where q.part_id = @part_id;

    insert into rowq.dead with (rowlock) (part_id, message_id, lane, attempt, died_at, holds_group)
    select @part_id, j.message_id, j.lane, j.attempt, sysutcdatetime(),
           iif(@holds = 1 and t.group_key is not null, 1, null)
    from @messages j
    left join @ties t on t.message_id = j.message_id
    option (loop join, maxdop 1, keepfixed plan);
    exec rowq.InternalPushResult @part_id, @messages, N'dead', @error;

    if @has_ties = 1
    begin
        -- A dead message has not ended.
        select @is_awaited = 1 from @ties t where t.is_awaited = 1;
        update @ties
        set group_key = iif(@holds = 1, null, group_key),
            is_awaited = null
        where @holds = 1 or is_awaited = 1;
        exec rowq.InternalCutTies @part_id, @ties, @may_close;
    end;
    if @is_awaited = 1
    begin
        select @ids = N'[' + string_agg(cast(j.message_id as nvarchar(max)), N',') + N']'
        from @messages j;
        exec rowq.InternalFollowDeaths @part_id, @ids, null, @may_close;
    end;
end
go
