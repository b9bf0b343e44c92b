set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalBlock
    @part_id int,
    @message_id bigint,
    @lane smallint,
    @due_at datetime2(6),
    @group_key varbinary(802),
    @on_dead nvarchar(20),
    @state nvarchar(20),
    @predecessor_id bigint,
    @rest_ids nvarchar(max)
as
begin
-- routine   InternalBlock
-- purpose   Let a new message wait for a predecessor, or fail with it, as InternalAwaitPredecessor has found.
-- promise   P25 P26 P27 P32
-- locks     new blocked, successor, recheck, dead and result rows; its own message and dedup rows
    set nocount on;
    declare @ties rowq.tie_list;
    declare @ended rowq.message_list;

    if @state = N'failed'
    begin
        insert into rowq.dead with (rowlock) (part_id, message_id, lane, attempt, died_at)
        values (@part_id, @message_id, @lane, 0, sysutcdatetime());
        update m
        set last_error = concat(N'predecessor ', @predecessor_id, N' is dead')
        from rowq.message m with (rowlock, forceseek)
        where m.part_id = @part_id
          and m.message_id = @message_id
        option (maxdop 1, keepfixed plan);
        insert into @ended (message_id, lane, place, attempt) values (@message_id, @lane, 0, 0);
        exec rowq.InternalPushResult @part_id, @ended, N'dead';
        insert into @ties (message_id, dedup_key)
        select m.message_id, m.dedup_key
        from rowq.message m with (forceseek)
        where m.part_id = @part_id
          and m.message_id = @message_id
          and m.dedup_key is not null;
        if @@rowcount > 0
            exec rowq.InternalCutTies @part_id, @ties, @may_close = 0;
        return;
    end;

    if @state = N'waiting'
        insert into rowq.successor with (rowlock) (part_id, predecessor_id, message_id, on_dead)
        values (@part_id, @predecessor_id, @message_id, @on_dead);
    else
        insert into rowq.recheck with (rowlock) (part_id, due_at, recheck_id, message_id)
        values (@part_id, sysutcdatetime(), next value for rowq.message_seq, @message_id);
    insert into rowq.blocked with (rowlock) (
        part_id, message_id, lane, predecessor_id, due_at, on_dead, group_key, rest_ids
    )
    values (
        @part_id, @message_id, @lane, @predecessor_id, @due_at, @on_dead, @group_key, @rest_ids
    );
end
go
