set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckBodies
    @given rowq.given_list readonly,
    @queues nvarchar(max)
as
begin
-- routine   InternalCheckBodies
-- purpose   Refuse the messages of publish_batch where a queue that is to get one does not take its body.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: each queue refuses it in its turn
    set nocount on;
    declare @shortest int;
    declare @fault nvarchar(400);
    declare @takers table (
        place      int not null,
        turn       int not null,
        max_length int not null,
        primary key (place, turn)
    );

    -- Most bodies are short enough for every queue.
    select top (1) @shortest = q.max_body_length
    from openjson(@queues) with (max_body_length int) q
    order by q.max_body_length;
    if not exists (
        select 1
        from @given g
        where g.name in (N'body', N'body_base64')
          and g.size > @shortest
    )
        return;

    insert into @takers (place, turn, max_length)
    select cast(p.value as int), cast(q.[key] as int),
           cast(json_value(q.value, N'$.max_body_length') as int)
    from openjson(@queues) q
    cross apply openjson(q.value, N'$.places') p
    option (maxdop 1, keepfixed plan);
    select top (1) @fault = concat(
        N'body is ', g.size, N' long, and ',
        (
            select json_value(q.value, N'$.queue_name')
            from openjson(@queues) q
            where q.[key] = cast(t.turn as nvarchar(10))
        ),
        N' takes ', t.max_length, N': max_body_length (message ', g.position, N')'
    )
    from @given g
    inner join @takers t
        on t.place = g.position
       and t.max_length < g.size
    where g.name in (N'body', N'body_base64')
      and g.size > @shortest
    order by g.position, t.turn
    option (loop join, force order, maxdop 1, keepfixed plan);
    if @fault is not null
        exec rowq.InternalRefuse @fault;
end
go
