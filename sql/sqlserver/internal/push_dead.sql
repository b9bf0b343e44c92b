set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPushDead
    @part_id int,
    @messages rowq.message_list readonly,
    @error nvarchar(max),
    @may_close bit
as
begin
-- routine   InternalPushDead
-- purpose   Keep messages as dead with the last error; free their dedup keys, and their groups unless they are to wait.
-- promise   P10 P12 P21
-- locks     new dead rows; message rows; as InternalCutTies
    set nocount on;
    declare @has_ties bit;
    declare @holds bit = 0;
    declare @ties rowq.tie_list;

    insert into @ties (message_id, dedup_key, group_key)
    select m.message_id, m.dedup_key, m.group_key
    from @messages j
    inner join rowq.message m with (forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
       and (m.dedup_key is not null or m.group_key is not null)
    option (loop join, force order, maxdop 1);
    set @has_ties = iif(@@rowcount > 0, 1, 0);
    if @has_ties = 1
        select @holds = iif(q.group_after_dead = N'hold', 1, 0)
        from rowq.queue q
        where q.part_id = @part_id;

    insert into rowq.dead with (rowlock) (part_id, message_id, lane, attempt, died_at, holds_group)
    select @part_id, j.message_id, j.lane, j.attempt, sysutcdatetime(),
           iif(@holds = 1 and t.group_key is not null, 1, null)
    from @messages j
    left join @ties t on t.message_id = j.message_id
    option (loop join, maxdop 1);

    exec rowq.InternalNoteError @part_id, @messages, @error;
    if @has_ties = 1
    begin
        if @holds = 1
            update @ties set group_key = null;
        exec rowq.InternalCutTies @part_id, @ties, @may_close;
    end;
end
go
