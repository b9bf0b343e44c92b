set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalStoreBatch
    @part_id int,
    @group_limit int,
    @messages nvarchar(max),
    @has_waiting bit,
    @now datetime2(6),
    @parsed rowq.parsed_list readonly,
    @new rowq.new_list readonly
as
begin
-- routine   InternalStoreBatch
-- purpose   Keep the messages of a batch that have their numbers and keys; those whose key another one holds are left out.
-- promise   P01 P05 P11 P20 P21 P25 P26 P27 P36
-- locks     new rows; with group keys, waits as enqueue does, in the order of the keys; as
--           InternalBlockBatch
-- differs   elsewhere it parses the batch, too, which here must be done before the call writes
    set nocount on;
    declare @lane smallint = -1;
    -- All messages have one moment, because the clock stands still for up to 16 milliseconds: one
    -- of a later call must not lie before the end of this batch. Their numbers keep their order.
    declare @seq bigint = datediff_big(microsecond, '19700101', @now);
    declare @waiting table (
        message_id bigint not null primary key
    );
    declare @joining rowq.message_list;

    insert into rowq.message with (rowlock) (
        part_id, message_id, max_attempts, enqueued_at, due_at, expires_at, message_type,
        dedup_key, headers, body, body_binary, group_key
    )
    select @part_id, n.message_id, p.max_attempts, @now, n.due_at,
           dateadd(
               microsecond,
               cast(round((p.expire_seconds - floor(p.expire_seconds)) * 1e6, 0) as int),
               dateadd(second, cast(floor(p.expire_seconds) as int), @now)
           ),
           p.message_type, p.dedup_key, b.headers, coalesce(b.body, b.body_json),
           b.body_binary, p.group_key
    from openjson(@messages) e
    inner join @new n on n.position = cast(e.[key] as int) + 1
    inner join @parsed p on p.position = n.position
    outer apply openjson(e.value) with (
        headers     nvarchar(max) '$.headers' as json,
        body        nvarchar(max) '$.body',
        body_json   nvarchar(max) '$.body' as json,
        body_binary varbinary(max) '$.body_base64'
    ) b
    where n.holder = n.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);

    while @lane is not null
    begin
        select @lane = min(n.lane)
        from @new n
        inner join rowq.lane l with (readuncommitted, forceseek (lane_pk (part_id, lane)))
            on l.part_id = @part_id
           and l.lane = n.lane
           and l.is_open = 0
        where n.lane > @lane
        option (loop join, force order, maxdop 1, keepfixed plan);
        if @lane is not null
            exec rowq.InternalOpenLanes @part_id, @lane;
    end;

    if @has_waiting = 1
    begin
        exec rowq.InternalBlockBatch @part_id, @messages, @new;
        insert into @waiting (message_id)
        select n.message_id
        from @new n
        where n.holder = n.message_id
          and (
              exists (
                  select 1
                  from rowq.blocked b with (forceseek (blocked_pk (part_id, message_id)))
                  where b.part_id = @part_id
                    and b.message_id = n.message_id
              )
              or exists (
                  select 1
                  from rowq.dead d with (forceseek (dead_pk (part_id, message_id)))
                  where d.part_id = @part_id
                    and d.message_id = n.message_id
              )
          )
        option (loop join, maxdop 1, keepfixed plan);
    end;

    insert into rowq.ready with (rowlock) (part_id, lane, seq, message_id)
    select @part_id, n.lane, @seq, n.message_id
    from @new n
    where n.holder = n.message_id
      and n.due_at is null
      and n.group_key is null
      and not exists (select 1 from @waiting w where w.message_id = n.message_id)
    option (maxdop 1, keepfixed plan);
    insert into rowq.delayed with (rowlock) (part_id, due_at, message_id, lane, group_key)
    select @part_id, n.due_at, n.message_id, n.lane, n.group_key
    from @new n
    where n.holder = n.message_id
      and n.due_at is not null
      and not exists (select 1 from @waiting w where w.message_id = n.message_id)
    option (maxdop 1, keepfixed plan);
    if exists (select 1 from @new n where n.group_key is not null)
    begin
        insert into @joining (message_id, lane, place, attempt, group_key)
        select n.message_id, n.lane, @seq, 0, n.group_key
        from @new n
        where n.holder = n.message_id
          and n.due_at is null
          and n.group_key is not null
          and not exists (select 1 from @waiting w where w.message_id = n.message_id);
        exec rowq.InternalJoinGroups @part_id, @group_limit, @joining;
    end;

    -- Where a message is not ready, maintain finds it by other keys.
    if exists (select 1 from @parsed p where p.expire_seconds is not null)
        insert into rowq.expiry with (rowlock)
            (part_id, expires_at, expiry_id, message_id, lane, seq)
        select @part_id,
               iif(m.expires_at > dateadd(day, 1, @now), dateadd(day, 1, @now), m.expires_at),
               n.message_id, n.message_id, n.lane,
               @seq
        from @new n
        inner join rowq.message m with (forceseek (message_pk (part_id, message_id)))
            on m.part_id = @part_id
           and m.message_id = n.message_id
        where n.holder = n.message_id
          and m.expires_at is not null
        option (loop join, force order, maxdop 1, keepfixed plan);
end
go
