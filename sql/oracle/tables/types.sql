-- These are collections that SQL knows: lists of ids for callers in PL/SQL, and the rows that
-- routines put together before they return them. No table is made of them, so they may be replaced.
create or replace type rowq_ids force as table of number(19)
/
-- Moments, one a row of a result.
create or replace type rowq_moments force as table of timestamp(6)
/
-- A rowq_line is one message in a result; an attribute that the routine does not use is null.
create or replace type rowq_line force as object (
    place      number(10),
    message_id number(19),
    lane       number(2),
    attempt    number(5),
    outcome    varchar2(20 char),
    due_at     timestamp(6)
)
/
create or replace type rowq_lines force as table of rowq_line
/
-- Bytes of topics' first words, or of patterns.
create or replace type rowq_keys force as table of raw(400)
/
-- A rowq_topic_key is a pattern that a message's topic matches; place is that of the message in its
-- batch.
create or replace type rowq_topic_key force as object (
    place       number(10),
    pattern_key raw(400)
)
/
create or replace type rowq_topic_keys force as table of rowq_topic_key
/
-- A rowq_sent is a message that publish has handed over to a queue; line_no is its place in the
-- result.
create or replace type rowq_sent force as object (
    line_no    number(10),
    place      number(10),
    queue_name varchar2(100 char),
    message_id number(19),
    outcome    varchar2(20 char)
)
/
create or replace type rowq_sent_list force as table of rowq_sent
/
-- A rowq_kept says what maintain did for one queue.
create or replace type rowq_kept force as object (
    queue_name         varchar2(100 char),
    elected            number(1),
    promoted           number(10),
    reaped             number(10),
    died               number(10),
    archived           number(10),
    purged             number(10),
    partitions_dropped number(10),
    expired            number(10)
)
/
create or replace type rowq_kept_list force as table of rowq_kept
/
-- A rowq_count says how many messages of one queue are in each place.
create or replace type rowq_count force as object (
    part_id        number(10),
    ready_count    number(19),
    delayed_count  number(19),
    leased_count   number(19),
    dead_count     number(19),
    blocked_count  number(19),
    oldest_seconds number
)
/
create or replace type rowq_counts force as table of rowq_count
/
-- A rowq_check is one check of health, with the values at which it becomes a warning and critical.
create or replace type rowq_check force as object (
    check_name varchar2(100 char),
    queue_name varchar2(100 char),
    measured   number,
    warning    number,
    critical   number,
    detail     varchar2(500 char)
)
/
create or replace type rowq_checks force as table of rowq_check
/
