set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckTopics
    @given rowq.given_list readonly
as
begin
-- routine   InternalCheckTopics
-- purpose   Refuse the messages of publish_batch where one has no topic or a bad one, and say which.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: topics are checked with the rest of a message
    set nocount on;
    declare @turn int = 0;
    declare @place int;
    declare @topic nvarchar(402);
    declare @fault nvarchar(200);
    declare @topics table (
        turn  int not null primary key,
        place int not null,
        topic nvarchar(402) collate Latin1_General_100_BIN2 not null
    );

    select top (1) @fault = concat(N'topic is missing (message ', g.position, N')')
    from @given g
    group by g.position
    having max(iif(g.name = N'topic' and g.kind > 0, 1, 0)) = 0
    order by g.position;
    if @fault is not null
        exec rowq.InternalRefuse @fault;

    -- Ask once for each topic, and not for each message.
    insert into @topics (turn, place, topic)
    select row_number() over (order by t.place), t.place, t.topic
    from (
        select g.value as topic, min(g.position) as place
        from @given g
        where g.name = N'topic'
          and g.kind = 1
        group by g.value
    ) t
    option (maxdop 1, keepfixed plan);
    while 1 = 1
    begin
        set @turn += 1;
        select @topic = t.topic, @place = t.place from @topics t where t.turn = @turn;
        if @@rowcount = 0
            break;
        exec rowq.InternalTopicFault N'topic', @topic, 0, @fault output;
        if @fault is not null
        begin
            set @fault = concat(@fault, N' (message ', @place, N')');
            exec rowq.InternalRefuse @fault;
        end;
    end;
end
go
