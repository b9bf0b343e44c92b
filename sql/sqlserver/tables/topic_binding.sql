-- A row says that a queue gets what is published under the topics that a pattern matches. Where a
-- pattern has no "*", a topic that begins with literal_head needs no other look. shape has a digit
-- for each word of the pattern: 1 for "*", 2 for "#", 0 for any other. Bindings are few and seldom
-- change, and a producer keeps no lock on them. A session that binds a queue, or unbinds it, holds
-- its part, shared. A second session that binds a queue to the same pattern waits for the first and
-- then adds no row (ignore_dup_key). Each look finds all that it asks for in one index, so that no
-- session goes from one index to another in the opposite order of a session that changes them.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.topic_binding') is null
create table rowq.topic_binding (
    part_id       int not null,
    topic_pattern nvarchar(200) collate Latin1_General_100_BIN2 not null,
    word_count    smallint not null,
    has_rest      bit not null,
    literal_head  nvarchar(200) collate Latin1_General_100_BIN2 not null,
    like_pattern  nvarchar(400) collate Latin1_General_100_BIN2 null,
    shape         varchar(100) collate Latin1_General_100_BIN2 not null,
    constraint topic_binding_pk primary key clustered (part_id, topic_pattern)
        with (ignore_dup_key = on, allow_page_locks = off)
);
go
alter table rowq.topic_binding set (lock_escalation = disable);
go
if indexproperty(object_id(N'rowq.topic_binding'), N'topic_binding_head_ix', N'IndexID') is null
create nonclustered index topic_binding_head_ix
    on rowq.topic_binding (literal_head, part_id, topic_pattern)
    include (word_count, has_rest, like_pattern, shape)
    with (allow_page_locks = off);
go
if indexproperty(object_id(N'rowq.topic_binding'), N'topic_binding_pattern_ix', N'IndexID') is null
create nonclustered index topic_binding_pattern_ix
    on rowq.topic_binding (topic_pattern, part_id)
    with (allow_page_locks = off);
go
