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
    declare @topic_count int;
    declare @part_id int;
    declare @found_part_id int;
    declare @topics table (
        place      int not null primary key,
        topic      nvarchar(200) collate Latin1_General_100_BIN2 not null,
        word_count int not null
    );
    -- A head is the first words of a topic, as many as it says, and so many characters long; word
    -- is the last of them.
    declare @heads table (
        place      int not null,
        word_count int not null,
        size       int not null,
        word       nvarchar(200) collate Latin1_General_100_BIN2 not null,
        primary key (place, word_count)
    );
    declare @shapes table (
        literal_head nvarchar(200) collate Latin1_General_100_BIN2 not null,
        shape        varchar(100) collate Latin1_General_100_BIN2 not null,
        primary key (literal_head, shape)
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
    set @topic_count = @@rowcount;
    insert into @heads (place, word_count, size, word)
    select t.place, 0, 0, N''
    from @topics t
    union all
    select t.place, cast(w.[key] as int) + 1,
           sum(len(w.value) + 1) over (
               partition by t.place order by cast(w.[key] as int) rows unbounded preceding
           ) - 1,
           cast(w.value as nvarchar(200))
    from @topics t
    cross apply openjson(concat(N'["', replace(t.topic, N'.', N'","'), N'"]')) w
    option (maxdop 1, keepfixed plan);

    -- A pattern matches if the words before its first wildcard are the first ones of the topic, and
    -- if as many words as it has are like its own. No "%" swallows a dot there, because both sides
    -- have the same number of them.
    if @topic_count <= 1
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
    else
    begin
        -- Many topics beside many patterns that begin alike would be too many pairs to compare. But
        -- a topic matches at most one pattern of each shape. So each pattern that begins as some
        -- topic does is read once for its shape, however many topics there are; the patterns that a
        -- topic would match are then put together from its words, and looked up.
        insert into @shapes (literal_head, shape)
        select distinct b.literal_head, b.shape
        from (
            select distinct left(t.topic, h.size) as head
            from @topics t
            inner join @heads h on h.place = t.place
        ) d
        inner join rowq.topic_binding b with (forceseek) on b.literal_head = d.head
        option (loop join, force order, maxdop 1, keepfixed plan);
        insert into @matches (part_id, place)
        select distinct b.part_id, m.place
        from (
            select t.place,
                   (
                       select string_agg(x.word, N'.') within group (order by x.word_count)
                       from (
                           select w.word_count,
                                  iif(
                                      substring(s.shape, w.word_count, 1) = '1', N'*', w.word
                                  ) as word
                           from @heads w
                           where w.place = t.place
                             and w.word_count between 1 and len(s.shape) - s.has_rest
                       ) x
                   ) as words,
                   case when s.has_rest = 1 then N'#' end as rest
            from @topics t
            inner join @heads h on h.place = t.place
            inner join (
                select x.literal_head, x.shape, iif(right(x.shape, 1) = '2', 1, 0) as has_rest
                from @shapes x
            ) s on s.literal_head = left(t.topic, h.size)
            where len(s.shape) = t.word_count
               or (s.has_rest = 1 and len(s.shape) <= t.word_count + 1)
        ) m
        inner join rowq.topic_binding b with (forceseek)
            on b.topic_pattern = concat_ws(N'.', m.words, m.rest)
        option (loop join, force order, maxdop 1, keepfixed plan);
    end;

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
