set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckGiven
    @given rowq.given_list readonly,
    @max_body_length int,
    @is_published bit
as
begin
-- routine   InternalCheckGiven
-- purpose   Refuse a batch with an invalid message, and say which one; topics of published ones are for InternalCheckTopics.
-- promise   P15 P20
-- errors    RQ711
    set nocount on;
    declare @fault nvarchar(200);

    -- kind is openjson's type: 0 null, 1 text, 2 number, 3 boolean, 4 array, 5 object.
    select top (1) @fault = concat(left(f.fault, 100), N' (message ', g.position, N')')
    from @given g
    cross apply (
        select case
            when g.name is null
                then iif(g.kind = 5, null, N'a message must be a JSON object')
            when g.name not in (
                    N'body', N'body_base64', N'message_type', N'headers', N'priority',
                    N'delay_seconds', N'run_at', N'dedup_key', N'max_attempts', N'group_key',
                    N'predecessor_ids', N'predecessor_positions', N'on_predecessor_dead', N'topic',
                    N'expire_seconds'
                )
                or g.name like N'% '
                or g.name = N'topic' and @is_published = 0
                then concat(N'unknown key ', g.name)
            when @is_published = 1
                and g.name in (
                    N'predecessor_ids', N'predecessor_positions', N'on_predecessor_dead'
                )
                then N'a published message has no predecessors'
            when g.kind = 0
                then null
            when g.name in (N'body', N'body_base64') and g.size > @max_body_length
                then concat(
                    N'body is ', g.size, N' long, and the queue takes ', @max_body_length,
                    N': max_body_length'
                )
            when g.name = N'body'
                then null
            when g.name = N'headers' and g.kind = 5
                then iif(g.size > 65536, N'headers are longer than 65536 characters', null)
            when g.name = N'headers'
                then N'headers must be an object'
            when g.name in (N'priority', N'max_attempts')
                and (g.kind <> 2 or g.value like N'%[^0-9-]%' or try_cast(g.value as int) is null)
                then concat(g.name, N' must be an integer, got ', left(g.value, 40))
            when g.name = N'priority'
                then iif(
                    try_cast(g.value as int) between 0 and 9, null,
                    concat(N'priority must be between 0 and 9, got ', g.value)
                )
            when g.name = N'max_attempts'
                then iif(
                    try_cast(g.value as int) between 1 and 10000, null,
                    concat(N'max_attempts must be between 1 and 10000, got ', g.value)
                )
            when g.name = N'delay_seconds'
                then case
                    when g.kind <> 2 or try_cast(g.value as float) is null
                        then N'delay_seconds must be a number'
                    when try_cast(g.value as float) not between 0 and 315360000
                        then concat(
                            N'delay_seconds must be between 0 and 315360000, got ',
                            left(g.value, 40)
                        )
                end
            when g.name = N'expire_seconds'
                then case
                    when g.kind <> 2 or try_cast(g.value as float) is null
                        then N'expire_seconds must be a number'
                    when try_cast(g.value as float) not between 0.001e0 and 315360000
                        then concat(
                            N'expire_seconds must be between 0.001 and 315360000, got ',
                            left(g.value, 40)
                        )
                end
            when g.name in (N'predecessor_ids', N'predecessor_positions')
                then iif(g.kind = 4, null, concat(g.name, N' must be an array'))
            when g.kind <> 1
                then concat(g.name, N' must be a string')
            when g.name = N'on_predecessor_dead'
                and g.value + N'.' not in (N'hold.', N'continue.', N'fail.')
                then N'on_predecessor_dead must be hold, continue or fail'
            when g.name = N'message_type' and g.size > 200
                then N'message_type is longer than 200 characters'
            when g.name in (N'dedup_key', N'group_key') and g.size not between 1 and 200
                then concat(g.name, N' must be 1 to 200 characters')
            when g.name = N'dedup_key' and left(g.value, 9) = N'schedule:'
                then N'dedup_key must not begin with schedule:, which is for schedules'
            when g.name = N'body_base64' and g.is_base64 = 0
                then N'body_base64 is not base64'
            when g.name = N'run_at' and g.moment is null
                then concat(N'run_at is no moment: ', left(g.value, 40))
            when g.name = N'run_at' and g.moment > dateadd(day, 3650, sysutcdatetime())
                then N'run_at must be a moment within the next ten years'
        end
    ) f (fault)
    where f.fault is not null
    order by g.position;
    if @fault is not null
        exec rowq.InternalRefuse @fault;

    select top (1) @fault = concat(
        iif(
            h.bodies > 1, N'body and body_base64 exclude each other',
            N'delay_seconds and run_at exclude each other'
        ),
        N' (message ', h.position, N')'
    )
    from (
        select g.position,
               sum(iif(g.name in (N'body', N'body_base64'), 1, 0)) as bodies,
               sum(iif(g.name in (N'delay_seconds', N'run_at'), 1, 0)) as times
        from @given g
        where g.kind > 0
        group by g.position
    ) h
    where h.bodies > 1 or h.times > 1
    order by h.position;
    if @fault is not null
        exec rowq.InternalRefuse @fault;
end
go
