set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalBoundQueues
    @messages nvarchar(max),
    @queues nvarchar(max) output
as
begin
-- routine   InternalBoundQueues
-- purpose   Return the queues that are bound to the topics of messages, in the order of their names, with the places of the messages, as JSON, and keep them from being dropped.
-- promise   P35
-- locks     the rows of their parts, shared, to the end of the transaction; waits for a drop
    set nocount on;
    declare @turn int = 0;
    declare @part_id int;
    declare @found_part_id int;
    declare @topics table (
        place      int not null primary key,
        topic      nvarchar(200) collate Latin1_General_100_BIN2 not null,
        word_count int not null
    );
    -- A head is the first words of a topic, as many as it says, and so many characters long.
    declare @heads table (
        place      int not null,
        word_count int not null,
        size       int not null,
        primary key (place, word_count)
    );
    declare @matches table (
        part_id int not null,
        place   int not null,
        primary key (part_id, place)
    );
    declare @bound table (
        turn            int not null primary key,
        part_id         int not null,
        queue_name      nvarchar(200) collate Latin1_General_100_BIN2 not null,
        max_body_length int not null,
        group_limit     int not null
    );

    insert into @topics (place, topic, word_count)
    select cast(e.[key] as int) + 1, t.topic, len(t.topic) - len(replace(t.topic, N'.', N'')) + 1
    from openjson(@messages) e
    cross apply (select cast(json_value(e.value, N'$.topic') as nvarchar(200))) t (topic)
    option (maxdop 1, keepfixed plan);
    insert into @heads (place, word_count, size)
    select t.place, 0, 0
    from @topics t
    union all
    select t.place, cast(w.[key] as int) + 1,
           sum(len(w.value) + 1) over (
               partition by t.place order by cast(w.[key] as int) rows unbounded preceding
           ) - 1
    from @topics t
    cross apply openjson(concat(N'["', replace(t.topic, N'.', N'","'), N'"]')) w
    option (maxdop 1, keepfixed plan);

    -- A pattern matches if the words before its first wildcard are the first ones of the topic, and
    -- if as many words as it has are like its own. No "%" swallows a dot there, because both sides
    -- have the same number of them.
    insert into @matches (part_id, place)
    select distinct b.part_id, t.place
    from @topics t
    inner join @heads h on h.place = t.place
    inner join rowq.topic_binding b with (forceseek) on b.literal_head = left(t.topic, h.size)
    inner join @heads w
        on w.place = t.place
       and w.word_count = b.word_count
    where (b.has_rest = 1 or b.word_count = t.word_count)
      and (b.like_pattern is null or left(t.topic, w.size) like b.like_pattern escape N'!')
    option (loop join, force order, maxdop 1, keepfixed plan);

    -- The bindings are read by a statement of their own, so that nobody holds one while it waits
    -- for the row of a queue. Names that differ in trailing blanks are equal to the engine.
    insert into @bound (turn, part_id, queue_name, max_body_length, group_limit)
    select row_number() over (order by q.queue_name, datalength(q.queue_name)), q.part_id,
           q.queue_name, q.max_body_length, q.group_limit
    from (select distinct m.part_id from @matches m) f
    inner join rowq.queue q with (forceseek) on q.part_id = f.part_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    while 1 = 1
    begin
        set @turn += 1;
        select @part_id = f.part_id from @bound f where f.turn = @turn;
        if @@rowcount = 0
            break;
        -- Leave a queue out that another session has dropped since the look.
        set @found_part_id = null;
        select @found_part_id = p.part_id
        from rowq.part p with (rowlock, repeatableread, forceseek)
        where p.part_id = @part_id
        option (maxdop 1, keepfixed plan);
        if @found_part_id is null
            delete from @bound where turn = @turn;
    end;

    set @queues = (
        select f.part_id, f.queue_name, f.max_body_length, f.group_limit,
               json_query(
                   concat(
                       N'[',
                       (
                           select string_agg(cast(m.place as nvarchar(max)), N',')
                                      within group (order by m.place)
                           from @matches m
                           where m.part_id = f.part_id
                       ),
                       N']'
                   ),
                   N'$'
               ) as places
        from @bound f
        order by f.turn
        for json path
    );
    set @queues = coalesce(@queues, N'[]');
end
go
