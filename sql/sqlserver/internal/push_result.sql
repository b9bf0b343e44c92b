set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPushResult
    @part_id int,
    @messages rowq.message_list readonly,
    @state nvarchar(20),
    @error nvarchar(max) = null,
    @results nvarchar(max) = null,
    @message_ids nvarchar(max) = null
as
begin
-- routine   InternalPushResult
-- purpose   Keep how messages have ended, where the queue has result_seconds; @results go along @message_ids, among which they are, or are of the only one where that is null. Without @error a dead message has the error that stands beside its body.
-- promise   P32
-- locks     result rows
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    -- The collation counts an emoji as one character.
    declare @text nvarchar(4000) = left(@error collate Latin1_General_100_CI_AS_SC, 2000);
    declare @is_kept bit = 0;

    select @is_kept = 1
    from rowq.queue q with (forceseek)
    where q.part_id = @part_id
      and q.result_seconds > 0;
    if @is_kept = 0
        return;

    if @results is not null
    begin
        if @message_ids is null
            select @message_ids = concat(N'[', j.message_id, N']') from @messages j;
        -- openjson reports a null as type 0 and a text, whose escapes it has read, as type 1.
        insert into rowq.result with (rowlock) (part_id, message_id, finished_at, state, result)
        select @part_id, j.message_id, @now, @state,
               case r.[type]
                   when 0 then null
                   when 1 then concat(N'"', string_escape(r.value, N'json'), N'"')
                   else r.value
               end
        from @messages j
        inner join (
            select cast(a.value as bigint) as message_id, min(cast(a.[key] as int)) as place
            from openjson(@message_ids) a
            group by cast(a.value as bigint)
        ) w on w.message_id = j.message_id
        inner join openjson(@results) r on cast(r.[key] as int) = w.place
        option (hash join, maxdop 1, keepfixed plan);
        return;
    end;

    -- A dead message that is cancelled or purged has its row already.
    update r
    set finished_at = @now,
        state       = @state
    from @messages j
    inner join rowq.result r with (index (result_pk), rowlock, forceseek)
        on r.part_id = @part_id
       and r.message_id = j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    insert into rowq.result with (rowlock) (part_id, message_id, finished_at, state, last_error)
    select @part_id, j.message_id, @now, @state, coalesce(@text, m.last_error)
    from @messages j
    left join rowq.message m with (forceseek (message_pk (part_id, message_id)))
        on m.part_id = @part_id
       and m.message_id = j.message_id
       and @state = N'dead'
       and @text is null
    where not exists (
        select 1
        from rowq.result r with (forceseek (result_pk (part_id, message_id)))
        where r.part_id = @part_id
          and r.message_id = j.message_id
    )
    option (loop join, force order, maxdop 1, keepfixed plan);
end
go
