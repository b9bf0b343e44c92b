-- A row says that a queue gets what is published under the topics that a pattern matches. Patterns
-- are compared as bytes, and never by "like", which follows the NLS_COMP and NLS_SORT of a session:
-- a topic matches one pattern of each shape and no other, so those that it may match are put
-- together from its words and found by their key. shape has a digit for each word of the pattern.
-- Bindings are few and seldom change, and a producer locks none of them. The foreign key needs no
-- index of its own, because part_id stands first in the primary key.
create table rowq_topic_binding (
    part_id       number(10) not null,
    pattern_key   raw(200) not null,
    topic_pattern varchar2(200 char) not null,
    head_key      raw(200) not null,
    shape         varchar2(100 char) not null,
    constraint rowq_topic_binding_pk primary key (part_id, pattern_key),
    constraint rowq_topic_binding_queue_fk foreign key (part_id) references rowq_queue (part_id)
)
segment creation immediate
/
create index rowq_topic_binding_head_ix on rowq_topic_binding (head_key, shape)
/
create index rowq_topic_binding_key_ix on rowq_topic_binding (pattern_key, part_id)
/
