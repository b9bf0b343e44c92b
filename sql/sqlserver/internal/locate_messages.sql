set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalLocateMessages
    @part_id int,
    @message_id bigint,
    @enqueued_at datetime2(6),
    @group_key nvarchar(400),
    @due_at datetime2(6) output,
    @state nvarchar(20) output,
    @lane smallint output,
    @attempt smallint output,
    @claim_id bigint output,
    @worker_name nvarchar(400) output,
    @lease_until datetime2(6) output,
    @finished_at datetime2(6) output,
    @waits_for bigint output,
    @progress nvarchar(4000) output,
    @leased_at datetime2(6) = null output
as
begin
-- routine   InternalLocateMessages
-- purpose   Find where a message is that still has a body; @due_at is passed in as its last place in delayed.
-- locks     rows, shared while they are read, passing over locked ones
    set nocount on;
    declare @was_due_at datetime2(6) = @due_at;
    declare @group_bytes varbinary(802) = convert(varbinary(802), @group_key + N'.');
    set @due_at = null;
    set @state = null;

    -- A message that waits for others goes to each of the other places from there, so look for it
    -- first.
    select @state = N'blocked', @lane = b.lane, @attempt = 0, @due_at = b.due_at,
           @waits_for = b.predecessor_id
    from rowq.blocked b with (rowlock, readpast, readcommittedlock, forceseek)
    where b.part_id = @part_id
      and b.message_id = @message_id;

    if @state is null
        select @state = N'delayed', @lane = d.lane, @attempt = d.attempt, @due_at = d.due_at
        from rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
        where d.part_id = @part_id
          and d.due_at = @was_due_at
          and d.message_id = @message_id;

    if @state is null
        select @state = N'dead', @lane = d.lane, @attempt = d.attempt, @finished_at = d.died_at
        from rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
        where d.part_id = @part_id
          and d.message_id = @message_id;

    if @state is null and @group_key is not null
    begin
        select @state = N'blocked', @lane = x.lane, @attempt = 0
        from rowq.grouped x with (rowlock, readpast, readcommittedlock, forceseek)
        where x.part_id = @part_id
          and x.group_key = @group_bytes
          and x.message_id = @message_id;
        if @state = N'blocked'
            select top (1) @waits_for = x.message_id
            from rowq.grouped x with (rowlock, readpast, readcommittedlock, forceseek)
            where x.part_id = @part_id
              and x.group_key = @group_bytes
              and x.message_id < @message_id
            order by x.message_id desc
            option (maxdop 1, keepfixed plan);
    end;

    if @state is null
        select top (1) @state = N'leased', @lane = l.lane, @attempt = l.attempt,
               @claim_id = c.claim_id, @worker_name = c.worker_name, @lease_until = c.lease_until,
               @progress = c.progress, @leased_at = c.leased_at
        from rowq.leased l with (rowlock, readpast, readcommittedlock, forceseek)
        inner join rowq.claim c
            with (rowlock, readpast, readcommittedlock, forceseek (claim_pk (part_id, claim_id)))
            on c.part_id = @part_id
           and c.claim_id = l.claim_id
        where l.part_id = @part_id
          and l.message_id = @message_id
        option (loop join, force order, maxdop 1, keepfixed plan);

    if @state is null
        select top (1) @state = f.state, @lane = f.lane, @attempt = f.attempt,
               @finished_at = f.finished_at
        from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
        where f.part_id = @part_id
          and f.message_id = @message_id
        option (maxdop 1, keepfixed plan);

    -- A message that was never given back is in the tail lane of its priority, where its seq is the
    -- moment of its enqueued_at.
    if @state is null
        select top (1) @state = N'ready', @lane = r.lane, @attempt = r.attempt
        from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
        where r.part_id = @part_id
          and r.lane in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
          and r.seq = datediff_big(microsecond, '19700101', @enqueued_at)
          and r.message_id = @message_id
        option (maxdop 1, keepfixed plan);

    if @state is null
        select top (1) @state = N'ready', @lane = r.lane, @attempt = r.attempt
        from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
        where r.part_id = @part_id
          and r.message_id = @message_id
        option (maxdop 1, keepfixed plan);

    if @state is null
        -- Another session is moving the message, or has moved it between these looks, so it is in
        -- that session's hands: report it as leased.
        set @state = N'leased';
end
go
