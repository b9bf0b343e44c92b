-- Topics: publish, and the patterns that queues are bound to.
--
-- A published message goes once to every queue with a matching pattern, in the order of queue
-- names, in one transaction. An index finds patterns by their prefix, the words before the first
-- wildcard. A batch reads once which shapes of patterns exist, and looks up one pattern per shape
-- instead of comparing every pair. Arguments are checked even if no queue is bound.
--
--   bind_topic, unbind_topic, publish -> topic_error
--   publish, enqueue_batch -> bound_queues
--   enqueue_batch -> check_bodies
--   enqueue_batch -> check_topics -> topic_error
--
-- Reads queue_lock, queue, topic_binding.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalTopicError
    @name nvarchar(40),
    @topic nvarchar(max),
    @is_pattern bit,
    @error nvarchar(200) output
as
begin
-- purpose   Return the error in a topic or pattern, or null.
    set nocount on;
    -- Double the dots, so that each word has its own pair and one replace finds every *.
    declare @words nvarchar(max) = concat(
        N'.', replace(@topic collate Latin1_General_100_BIN2, N'.', N'..'), N'.'
    );
    if @is_pattern = 1
    begin
        set @words = replace(@words collate Latin1_General_100_BIN2, N'.*.', N'.x.');
        if right(@words, 3) collate Latin1_General_100_BIN2 = N'.#.'
            set @words = stuff(@words, len(@words) - 1, 1, N'x');
    end;

    -- A dot at the end makes trailing blanks count. The collation counts an emoji as one character.
    set @error = case
        when @topic is null
            then concat(@name, N' is required')
        when len((@topic + N'.') collate Latin1_General_100_CI_AS_SC) > 201
            then concat(@name, N' must be at most 200 characters')
        when @words collate Latin1_General_100_BIN2 not like N'%[^A-Za-z0-9_.-]%'
            and @words collate Latin1_General_100_BIN2 not like N'%...%'
            and @words collate Latin1_General_100_BIN2 <> N'..'
            then null
        when @is_pattern = 1
            then concat(
                @name, N' must be words of letters, digits, _, - or *, separated by dots, # last'
            )
        else concat(@name, N' must be words of letters, digits, _ and -, separated by dots')
    end;
end
go

create or alter procedure rowq.InternalBoundQueues
    @messages nvarchar(max),
    @queues nvarchar(max) output
as
begin
-- purpose   Return the queues that are bound to topics, by name; protect them from drop_queue.
-- locks     their rows in queue_lock, shared, to the end of the transaction; waits for drop_queue
--
-- @queues is a JSON array of queues, each with the positions of its messages (positions).
    set nocount on;
    declare @turn int = 0;
    declare @topic_count int;
    declare @queue_id int;
    declare @found_queue_id int;
    declare @topics table (
        position      int not null primary key,
        topic      nvarchar(200) collate Latin1_General_100_BIN2 not null,
        word_count int not null
    );
    -- The first word_count words of a topic, size characters long; word is the last of them.
    declare @prefixes table (
        position      int not null,
        word_count int not null,
        size       int not null,
        word       nvarchar(200) collate Latin1_General_100_BIN2 not null,
        primary key (position, word_count)
    );
    declare @shapes table (
        literal_prefix nvarchar(200) collate Latin1_General_100_BIN2 not null,
        shape          varchar(100) collate Latin1_General_100_BIN2 not null,
        primary key (literal_prefix, shape)
    );
    declare @matches table (
        queue_id int not null,
        position    int not null,
        primary key (queue_id, position)
    );
    declare @bound table (
        turn            int not null primary key,
        queue_id        int not null,
        queue_name      nvarchar(200) collate Latin1_General_100_BIN2 not null,
        max_body_length int not null,
        group_limit     int not null
    );

    insert into @topics (position, topic, word_count)
    select cast(e.[key] as int) + 1, t.topic, len(t.topic) - len(replace(t.topic, N'.', N'')) + 1
    from openjson(@messages) e
    cross apply (select cast(json_value(e.value, N'$.topic') as nvarchar(200))) t (topic)
    option (maxdop 1, keepfixed plan);
    set @topic_count = @@rowcount;
    insert into @prefixes (position, word_count, size, word)
    select t.position, 0, 0, N''
    from @topics t
    union all
    select t.position, cast(w.[key] as int) + 1,
           sum(len(w.value) + 1) over (
               partition by t.position order by cast(w.[key] as int) rows unbounded preceding
           ) - 1,
           cast(w.value as nvarchar(200))
    from @topics t
    cross apply openjson(concat(N'["', replace(t.topic, N'.', N'","'), N'"]')) w
    option (maxdop 1, keepfixed plan);

    -- A pattern matches if its prefix begins the topic, and if the same number of words of the
    -- topic is like the pattern. "%" cannot match a dot: both sides have the same number of dots.
    if @topic_count <= 1
        insert into @matches (queue_id, position)
        select distinct b.queue_id, t.position
        from @topics t
        inner join @prefixes h on h.position = t.position
        inner join rowq.topic_binding b with (forceseek) on b.literal_prefix = left(t.topic, h.size)
        inner join @prefixes w
            on w.position = t.position
           and w.word_count = b.word_count
        where (b.matches_rest = 1 or b.word_count = t.word_count)
          and (b.like_pattern is null or left(t.topic, w.size) like b.like_pattern escape N'!')
        option (loop join, force order, maxdop 1, keepfixed plan);
    else
    begin
        -- Many topics times many patterns are too many pairs to compare, but a topic matches at
        -- most one pattern of each shape. So read the shapes below each prefix once, build the
        -- patterns that a topic would match from its words, and look them up.
        insert into @shapes (literal_prefix, shape)
        select distinct b.literal_prefix, b.shape
        from (
            select distinct left(t.topic, h.size) as prefix
            from @topics t
            inner join @prefixes h on h.position = t.position
        ) d
        inner join rowq.topic_binding b with (forceseek) on b.literal_prefix = d.prefix
        option (loop join, force order, maxdop 1, keepfixed plan);
        insert into @matches (queue_id, position)
        select distinct b.queue_id, m.position
        from (
            select t.position,
                   (
                       select string_agg(x.word, N'.') within group (order by x.word_count)
                       from (
                           select w.word_count,
                                  iif(
                                      substring(s.shape, w.word_count, 1) = '1', N'*', w.word
                                  ) as word
                           from @prefixes w
                           where w.position = t.position
                             and w.word_count between 1 and len(s.shape) - s.matches_rest
                       ) x
                   ) as words,
                   case when s.matches_rest = 1 then N'#' end as rest
            from @topics t
            inner join @prefixes h on h.position = t.position
            inner join (
                select x.literal_prefix, x.shape, iif(right(x.shape, 1) = '2', 1, 0) as matches_rest
                from @shapes x
            ) s on s.literal_prefix = left(t.topic, h.size)
            where len(s.shape) = t.word_count
               or (s.matches_rest = 1 and len(s.shape) <= t.word_count + 1)
        ) m
        inner join rowq.topic_binding b with (forceseek)
            on b.topic_pattern = concat_ws(N'.', m.words, m.rest)
        option (loop join, force order, maxdop 1, keepfixed plan);
    end;

    -- A separate statement reads the bindings, so that none is locked while this waits for a
    -- queue's row. To the engine, names that differ only in trailing blanks are equal.
    insert into @bound (turn, queue_id, queue_name, max_body_length, group_limit)
    select row_number() over (order by q.queue_name, datalength(q.queue_name)), q.queue_id,
           q.queue_name, q.max_body_length, q.group_limit
    from (select distinct m.queue_id from @matches m) f
    inner join rowq.queue q with (forceseek) on q.queue_id = f.queue_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    while 1 = 1
    begin
        set @turn += 1;
        select @queue_id = f.queue_id from @bound f where f.turn = @turn;
        if @@rowcount = 0
            break;
        -- Skip a queue that was dropped since then.
        set @found_queue_id = null;
        select @found_queue_id = p.queue_id
        from rowq.queue_lock p with (rowlock, repeatableread, forceseek)
        where p.queue_id = @queue_id
        option (maxdop 1, keepfixed plan);
        if @found_queue_id is null
            delete from @bound where turn = @turn;
    end;

    set @queues = (
        select f.queue_id, f.queue_name, f.max_body_length, f.group_limit,
               json_query(
                   concat(
                       N'[',
                       (
                           select string_agg(cast(m.position as nvarchar(max)), N',')
                                      within group (order by m.position)
                           from @matches m
                           where m.queue_id = f.queue_id
                       ),
                       N']'
                   ),
                   N'$'
               ) as positions
        from @bound f
        order by f.turn
        for json path
    );
    set @queues = coalesce(@queues, N'[]');
end
go

create or alter procedure rowq.InternalCheckBodies
    @input rowq.input_list readonly,
    @queues nvarchar(max)
as
begin
-- purpose   Refuse a batch of publish_batch with a body that is too long for one of its queues.
-- errors    RQ711
    set nocount on;
    declare @shortest int;
    declare @error nvarchar(400);
    declare @takers table (
        position      int not null,
        turn       int not null,
        max_length int not null,
        primary key (position, turn)
    );

    -- Most bodies are short enough for every queue.
    select top (1) @shortest = q.max_body_length
    from openjson(@queues) with (max_body_length int) q
    order by q.max_body_length;
    if not exists (
        select 1
        from @input g
        where g.name in (N'body', N'body_base64')
          and g.size > @shortest
    )
        return;

    insert into @takers (position, turn, max_length)
    select cast(p.value as int), cast(q.[key] as int),
           cast(json_value(q.value, N'$.max_body_length') as int)
    from openjson(@queues) q
    cross apply openjson(q.value, N'$.positions') p
    option (maxdop 1, keepfixed plan);
    select top (1) @error = concat(
        N'body must be at most ', t.max_length, N' characters (max_body_length), got ', g.size,
        N' in queue ',
        (
            select json_value(q.value, N'$.queue_name')
            from openjson(@queues) q
            where q.[key] = cast(t.turn as nvarchar(10))
        ),
        N' (message ', g.position, N')'
    )
    from @input g
    inner join @takers t
        on t.position = g.position
       and t.max_length < g.size
    where g.name in (N'body', N'body_base64')
      and g.size > @shortest
    order by g.position, t.turn
    option (loop join, force order, maxdop 1, keepfixed plan);
    if @error is not null
        exec rowq.InternalRefuse @error;
end
go

create or alter procedure rowq.InternalCheckTopics
    @input rowq.input_list readonly
as
begin
-- purpose   Refuse a batch of publish_batch with a missing or invalid topic.
-- errors    RQ711
    set nocount on;
    declare @turn int = 0;
    declare @position int;
    declare @topic nvarchar(402);
    declare @error nvarchar(200);
    declare @topics table (
        turn  int not null primary key,
        position int not null,
        topic nvarchar(402) collate Latin1_General_100_BIN2 not null
    );

    select top (1) @error = concat(N'topic is required (message ', g.position, N')')
    from @input g
    group by g.position
    having max(iif(g.name = N'topic' and g.kind > 0, 1, 0)) = 0
    order by g.position;
    if @error is not null
        exec rowq.InternalRefuse @error;

    -- Check each topic once, not once per message.
    insert into @topics (turn, position, topic)
    select row_number() over (order by t.position), t.position, t.topic
    from (
        select g.value as topic, min(g.position) as position
        from @input g
        where g.name = N'topic'
          and g.kind = 1
        group by g.value
    ) t
    option (maxdop 1, keepfixed plan);
    while 1 = 1
    begin
        set @turn += 1;
        select @topic = t.topic, @position = t.position from @topics t where t.turn = @turn;
        if @@rowcount = 0
            break;
        exec rowq.InternalTopicError N'topic', @topic, 0, @error output;
        if @error is not null
        begin
            set @error = concat(@error, N' (message ', @position, N')');
            exec rowq.InternalRefuse @error;
        end;
    end;
end
go
