set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRecheckGroups
    @part_id int,
    @limit int,
    @owns_transaction bit,
    @solved int output
as
begin
-- routine   InternalRecheckGroups
-- purpose   Look again at up to @limit tokens that were left; @solved is how many are passed on or given back.
-- promise   P22 P24
-- locks     recheck rows, passing over locked ones; as InternalPassGroup and InternalWidenGroup
-- differs   in the caller's transaction a token is only passed on
    set nocount on;
    declare @floor bigint;
    declare @due_at datetime2(6);
    declare @now datetime2(6) = sysutcdatetime();
    declare @recheck_id bigint;
    declare @group_key varbinary(802);
    declare @is_hint bit;
    declare @group_limit int;
    declare @message_id bigint;
    declare @lane smallint;
    declare @is_left bit;
    declare @is_done bit;
    declare @notes table (
        due_at     datetime2(6) not null,
        recheck_id bigint not null,
        group_key  varbinary(802) not null,
        is_hint    bit not null,
        primary key (due_at, recheck_id)
    );
    declare @ready rowq.message_list;
    set @solved = 0;

    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -6;
    exec rowq.InternalFromMicroseconds @floor, @due_at output;
    insert into @notes (due_at, recheck_id, group_key, is_hint)
    select top (@limit) r.due_at, r.recheck_id, r.group_key, r.is_hint
    from rowq.recheck r with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where r.part_id = @part_id
      and r.due_at >= @due_at
      and r.due_at <= @now
    order by r.due_at, r.recheck_id
    option (maxdop 1, keepfixed plan);
    if @@rowcount = 0
        return;
    select @group_limit = q.group_limit from rowq.queue q where q.part_id = @part_id;

    while 1 = 1
    begin
        select top (1) @due_at = n.due_at, @recheck_id = n.recheck_id, @group_key = n.group_key,
               @is_hint = n.is_hint
        from @notes n
        order by n.due_at, n.recheck_id;
        if @@rowcount = 0
            break;
        delete from @notes where due_at = @due_at and recheck_id = @recheck_id;

        set @is_done = 0;
        if @is_hint = 0
        begin
            exec rowq.InternalPassGroup
                @part_id, @group_key, @group_limit, @owns_transaction, @message_id output,
                @lane output, @is_left output;
            set @is_done = iif(@is_left = 1, 0, 1);
            if @message_id is not null
                insert into @ready (message_id, lane, place, attempt)
                values (@message_id, @lane, @solved, 0);
        end;
        else if @owns_transaction = 1
            exec rowq.InternalWidenGroup @part_id, @group_limit, @group_key, @is_done output;

        -- A row that cannot be solved stays as it is: a producer that is idle in its transaction
        -- must not make every look write.
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
    end;
    if exists (select 1 from @ready)
        exec rowq.InternalPushReady @part_id, @ready;
end
go
