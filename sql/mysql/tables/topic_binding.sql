-- A row says that a queue gets what is published under the topics that a pattern matches. Where a
-- pattern has no "*", a topic that begins with literal_head needs no other look. Bindings are few
-- and seldom change, and a producer locks none of them. Whoever binds a queue, or unbinds it, holds
-- its part, shared.
create table if not exists rowq.topic_binding (
    part_id       int not null comment 'The queue; never used again for another one.',
    topic_pattern varbinary(200) not null comment 'What of the topics the queue gets.',
    word_count    smallint not null comment 'How many words the pattern has, without #.',
    has_rest      boolean not null comment 'Whether any words may follow, or none: the pattern ends with #.',
    literal_head  varbinary(200) not null comment 'The words before the first * or #, which the topic has to begin with.',
    like_pattern  varbinary(400) null comment 'What the topic''s first word_count words are compared with, ! before what is no wildcard; null where literal_head has said it.',
    shape         varbinary(100) not null comment 'A digit for each word of the pattern: 1 is *, 2 is #, 0 any other.',
    primary key (part_id, topic_pattern),
    key topic_binding_head_ix (literal_head, word_count, has_rest, like_pattern, shape),
    key topic_binding_pattern_ix (topic_pattern)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Which queue gets what is published under which topics.';
