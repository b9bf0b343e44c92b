-- A row says that a queue gets what is published under the topics that a pattern matches. Where a
-- pattern has no "*", a topic that begins with literal_head needs no other look. shape has a digit
-- for each word of the pattern: 1 for "*", 2 for "#", 0 for any other. Bindings are few and seldom
-- change, and a producer locks none of them.
create table if not exists rowq.topic_binding (
    part_id       integer not null,
    word_count    smallint not null,
    has_rest      boolean not null,
    topic_pattern text not null,
    literal_head  text not null,
    like_pattern  text,
    shape         text not null,
    constraint topic_binding_pk primary key (part_id, topic_pattern)
);

create index if not exists topic_binding_head_ix on rowq.topic_binding (literal_head);

create index if not exists topic_binding_pattern_ix on rowq.topic_binding (topic_pattern);
