set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRecheck
    @part_id int,
    @limit int,
    @owns_transaction bit,
    @solved int output
as
begin
-- routine   InternalRecheck
-- purpose   Look again at up to @limit tokens and messages that were left; @solved is for how many that was enough.
-- promise   P22 P24 P26 P27
-- locks     recheck rows, passing over locked ones; as InternalPassGroup, InternalWidenGroup,
--           InternalLetGo, InternalFreeSuccessors, InternalEndHeld and InternalRecheckDeath
-- differs   in the caller's transaction tokens are passed on, and nothing else
    set nocount on;
    declare @floor bigint;
    declare @due_at datetime2(6);
    declare @now datetime2(6) = sysutcdatetime();
    declare @recheck_id bigint;
    declare @waiting_id bigint;
    declare @predecessor_id bigint;
    declare @group_key varbinary(802);
    declare @is_hint bit;
    declare @group_limit int;
    declare @ids nvarchar(max);
    declare @again nvarchar(max);
    declare @message_id bigint;
    declare @lane smallint;
    declare @is_left bit;
    declare @is_done bit;
    declare @notes table (
        due_at         datetime2(6) not null,
        recheck_id     bigint not null,
        message_id     bigint null,
        predecessor_id bigint null,
        group_key      varbinary(802) null,
        is_hint        bit not null,
        primary key (due_at, recheck_id)
    );
    declare @ready rowq.message_list;
    set @solved = 0;

    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -4 /* deferred */;
    exec rowq.InternalFromMicroseconds @floor, @due_at output;
    insert into @notes (due_at, recheck_id, message_id, predecessor_id, group_key, is_hint)
    select top (@limit) r.due_at, r.recheck_id, r.message_id, r.predecessor_id, r.group_key,
           r.is_hint
    from rowq.recheck r with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where r.part_id = @part_id
      and r.due_at >= @due_at
      and r.due_at <= @now
    order by r.due_at, r.recheck_id
    option (maxdop 1, keepfixed plan);
    if @@rowcount = 0
        return;
    select @group_limit = q.group_limit
    from rowq.queue q with (forceseek)
    where q.part_id = @part_id;

    while 1 = 1
    begin
        select top (1) @due_at = n.due_at, @recheck_id = n.recheck_id,
               @waiting_id = n.message_id, @predecessor_id = n.predecessor_id,
               @group_key = n.group_key, @is_hint = n.is_hint
        from @notes n
        order by n.due_at, n.recheck_id;
        if @@rowcount = 0
            break;
        delete from @notes where due_at = @due_at and recheck_id = @recheck_id;

        set @is_done = 0;
        if @group_key is not null and @is_hint = 0
        begin
            exec rowq.InternalPassGroup
                @part_id, @group_key, @group_limit, @owns_transaction, @message_id output,
                @lane output, @is_left output;
            set @is_done = iif(@is_left = 1, 0, 1);
            if @message_id is not null
                insert into @ready (message_id, lane, place, attempt)
                values (@message_id, @lane, @solved, 0);
        end;
        else if @owns_transaction = 0
            continue;
        else if @group_key is not null
            exec rowq.InternalWidenGroup @part_id, @group_limit, @group_key, @is_done output;
        else if @waiting_id = @predecessor_id
            exec rowq.InternalEndHeld @part_id, @waiting_id, @is_done output;
        else if @waiting_id is not null
        begin
            set @ids = concat(N'[', @waiting_id, N']');
            exec rowq.InternalLetGo @part_id, @ids, null, @may_join = 1, @again = @again output;
            set @is_done = iif(@again is null, 1, 0);
        end;
        else if @is_hint = 1
            exec rowq.InternalRecheckDeath
                @part_id, @predecessor_id, @may_join = 1, @is_done = @is_done output;
        else
        begin
            exec rowq.InternalFreeSuccessors @part_id, @predecessor_id, @may_join = 1;
            set @is_done = 1;
        end;

        -- A row that cannot be solved stays as it is: a producer that is idle in its transaction
        -- must not make every look write. What takes long is left to the next call.
        if @is_done = 1
        begin
            delete r
            from rowq.recheck r with (rowlock, forceseek)
            where r.part_id = @part_id
              and r.due_at = @due_at
              and r.recheck_id = @recheck_id
            option (maxdop 1, keepfixed plan);
            set @solved += 1;
        end;
        if datediff(millisecond, @now, sysutcdatetime()) > 500
            break;
    end;
    if exists (select 1 from @ready)
        exec rowq.InternalPushReady @part_id, @ready;
end
go
