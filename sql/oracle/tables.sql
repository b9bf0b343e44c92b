-- Tables, sequences and types of rowq on Oracle, in the order of installation.
--
-- rowq_queue has the settings; rowq_message has what producers handed in. A message waits in one of
-- rowq_ready, rowq_delayed, rowq_group_waiting and rowq_blocked, is leased in rowq_claim and
-- rowq_leased, and ends in rowq_finished and rowq_archive, or in rowq_dead. The rest belongs to
-- features: a queue that does not use one has no rows there. Tables that many sessions change have
-- room for their locks in each block (initrans).
--
-- Each table is a unit: an upgrade brings the tables that changed, and its migration says how.
-- statistics.sql comes after them.

-- The rows say what is installed: schema_version and rowq_version, which each migration writes.
-- For a queue that could not be maintained, maintain_fault.<queue_id> is the last error, until
-- maintain succeeds. archive_dropped_before is the day up to which maintain has dropped partitions
-- of the archive.
create table rowq_meta (
    name       varchar2(100 char) not null,
    value      varchar2(500 char) not null,
    changed_at timestamp(6) default sys_extract_utc(systimestamp) not null,
    constraint rowq_meta_pk primary key (name)
)
segment creation immediate
/

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
    queue_id       number(10),
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

-- A row holds the settings of a queue. queue_id stands first in the key of every table below and is
-- never reused. queue_key is what is compared: the bytes of the name, so that upper case, accents
-- and trailing blanks matter whatever NLS_COMP and NLS_SORT a session has. All times are UTC. Until
-- waiting_until a session waits to be woken, see wakeup.sql; it is null where that was never run.
-- initrans and pctfree leave the blocks room for many lock entries, because sessions that wait at
-- many queues note it at the same time.
create table rowq_queue (
    queue_id             number(10) not null,
    queue_name           varchar2(100 char) not null,
    queue_key            raw(400) not null,
    lease_seconds        number(5) default 30 not null,
    max_attempts         number(5) default 10 not null,
    backoff_base_seconds number default 5 not null,
    backoff_factor       number default 2 not null,
    backoff_cap_seconds  number default 3600 not null,
    backoff_jitter       number default 0.2 not null,
    archive_days         number(5) default 0 not null,
    max_body_length      number(8) default 1048576 not null,
    group_limit          number(3) default 1 not null,
    group_after_dead     varchar2(10 char) default 'continue' not null,
    group_pause_seconds  number default 0 not null,
    max_leased           number(6) default 0 not null,
    rate_limit           number(6) default 0 not null,
    rate_seconds         number default 1 not null,
    result_seconds       number default 0 not null,
    history_days         number(5) default 0 not null,
    paused_at            timestamp(6),
    waiting_until        timestamp(6),
    created_at           timestamp(6) not null,
    constraint rowq_queue_pk primary key (queue_id),
    constraint rowq_queue_key_uq unique (queue_key),
    constraint rowq_queue_lease_ck check (lease_seconds between 1 and 86400),
    constraint rowq_queue_attempts_ck check (max_attempts between 1 and 10000),
    constraint rowq_queue_base_ck check (backoff_base_seconds between 0 and 86400),
    constraint rowq_queue_factor_ck check (backoff_factor between 1 and 10),
    constraint rowq_queue_cap_ck check (backoff_cap_seconds between 0 and 31536000),
    constraint rowq_queue_jitter_ck check (backoff_jitter between 0 and 1),
    constraint rowq_queue_archive_ck check (archive_days between 0 and 36500),
    constraint rowq_queue_body_ck check (max_body_length between 1 and 33554432),
    constraint rowq_queue_group_limit_ck check (group_limit between 1 and 100),
    constraint rowq_queue_after_dead_ck check (group_after_dead in ('continue', 'hold')),
    constraint rowq_queue_group_pause_ck check (group_pause_seconds between 0 and 86400),
    constraint rowq_queue_max_leased_ck check (max_leased between 0 and 100000),
    constraint rowq_queue_rate_limit_ck check (rate_limit between 0 and 100000),
    constraint rowq_queue_rate_seconds_ck check (rate_seconds between 0.1 and 86400),
    constraint rowq_queue_result_ck check (result_seconds between 0 and 31536000),
    constraint rowq_queue_history_ck check (history_days between 0 and 36500)
)
segment creation immediate
initrans 16 pctfree 40
/
create sequence rowq_queue_seq start with 1 increment by 1 cache 20 noorder
/

-- A row is a lane of a queue. create_queue makes twenty for messages (priority * 2, plus 1 for the
-- tail). floor_seq is where the live rows of the lane begin: a hint that spares readers the emptied
-- index blocks below it. Only maintain moves it (internal_rescan_floors), never nearer than half a
-- second to now. It looks from 0, so a wrong floor delays a message and never loses one. Lanes
-- below 0 stand for the other tables that are read from their low end: -1 claim (claim_id), -2
-- delayed (due_at in microseconds since 1970), -3 finished (finish_id), -4 deferred (due_at,
-- likewise), -5 started (started_at, likewise), -6 expiry (expires_at, likewise), -7 result
-- (finished_at, likewise), -8 history (ended_at, likewise). The session that is elected to run
-- maintain for the queue holds the row of lane -1. A lane that was never used is closed, and
-- dequeue does not look into it; of those below 0 only lane -4 is ever opened. There are few rows;
-- initrans and pctfree leave their blocks room for many lock entries.
create table rowq_lane (
    queue_id    number(10) not null,
    lane        number(2) not null,
    is_open     number(1) default 0 not null,
    floor_seq   number(19) default 0 not null,
    check_after timestamp(6) default timestamp '1970-01-01 00:00:00' not null,
    constraint rowq_lane_pk primary key (queue_id, lane),
    constraint rowq_lane_is_open_ck check (is_open in (0, 1))
)
segment creation immediate
initrans 16 pctfree 40
/

-- A row is what the producer handed over. It is written once and deleted once; only a failure
-- updates last_error and due_at, and who names the message as a predecessor sets has_successors to
-- 1, each time anew: a serializable transaction that does not see who waits cannot lock or delete
-- the row then (ORA-08177). lane and seq find a message that was never given back, because they are
-- its first place in ready. due_at is the last place that the message had in delayed. The foreign
-- key needs no index of its own, because queue_id stands first in the primary key; it makes an
-- insert fail that has waited for drop_queue. An empty text body is an empty CLOB, which is not
-- null. expires_at never changes, and is null for a message that does not expire. A LOB of up to
-- about 4000 bytes is kept in the row, a longer one beside it.
create table rowq_message (
    queue_id       number(10) not null,
    message_id     number(19) not null,
    max_attempts   number(5),
    lane           number(2) not null,
    seq            number(19) not null,
    enqueued_at    timestamp(6) not null,
    due_at         timestamp(6),
    message_type   varchar2(200 char),
    dedup_key      varchar2(200 char),
    headers        clob,
    body           clob,
    body_binary    blob,
    last_error     clob,
    group_key      varchar2(200 char),
    has_successors number(1),
    expires_at     timestamp(6),
    constraint rowq_message_pk primary key (queue_id, message_id)
        using index (
            create unique index rowq_message_pk on rowq_message (queue_id, message_id) initrans 32
        ),
    constraint rowq_message_queue_fk foreign key (queue_id) references rowq_queue (queue_id),
    constraint rowq_message_headers_ck check (headers is json strict)
)
segment creation immediate
initrans 32 pctfree 10
lob (headers) store as securefile rowq_message_headers (enable storage in row cache)
lob (body) store as securefile rowq_message_body (enable storage in row cache)
lob (body_binary) store as securefile rowq_message_binary (enable storage in row cache)
lob (last_error) store as securefile rowq_message_error (enable storage in row cache)
/
create sequence rowq_message_seq start with 1 increment by 1 cache 1000 noorder
/

-- A row is a message that waits for a worker, and is never updated. The primary key is the dequeue
-- order, and there is no second index. lane is priority * 2, plus 1 for the tail: a message that is
-- released or reaped goes to the front lane. seq is the moment of entry, in microseconds since 1970
-- UTC, plus the place in its batch: no sequence orders the producers. message_id decides between
-- equal ones. The table is a heap with an index and not index-organized, because the physical rowid
-- deletes what the cursor has locked without a second search. initrans gives many sessions a lock
-- entry of their own in a block from the start, because a full block cannot add one later ("enq: TX
-- - allocate ITL entry"), and pctfree leaves room for more.
create table rowq_ready (
    queue_id   number(10) not null,
    lane       number(2) not null,
    seq        number(19) not null,
    message_id number(19) not null,
    attempt    number(5) default 0 not null,
    constraint rowq_ready_pk primary key (queue_id, lane, seq, message_id)
        using index (
            create unique index rowq_ready_pk on rowq_ready (queue_id, lane, seq, message_id)
            initrans 64 pctfree 10
        ),
    constraint rowq_ready_lane_ck check (lane between 0 and 19)
)
segment creation immediate
initrans 64 pctfree 20
/

-- A row is a message that waits for its time, kept apart so that dequeue does not read it. The
-- primary key is the order in which messages become due, and the only index. group_key is of one
-- that joins its group when it is due; one that is retried has its slot, and none here.
create table rowq_delayed (
    queue_id   number(10) not null,
    due_at     timestamp(6) not null,
    message_id number(19) not null,
    lane       number(2) not null,
    attempt    number(5) default 0 not null,
    group_key  varchar2(200 char),
    constraint rowq_delayed_pk primary key (queue_id, due_at, message_id)
        using index (
            create unique index rowq_delayed_pk on rowq_delayed (queue_id, due_at, message_id)
            initrans 32 pctfree 10
        )
)
segment creation immediate
initrans 32 pctfree 20
/

-- A row is one successful dequeue: the lease of a whole batch, whose messages are in rowq_leased. A
-- heartbeat changes only lease_until, which is in no index. claim_id is the fencing token, and
-- finish_id of rowq_finished comes from the same sequence. Who cancels messages of the batch sets
-- has_cancels to 1, each time anew: a heartbeat reads it, and a serializable transaction that does
-- not see what was cancelled cannot lock or delete the row then (ORA-08177). progress is null until
-- a heartbeat says it; it is a CLOB, because 2000 characters may take more bytes than a varchar2.
create table rowq_claim (
    queue_id    number(10) not null,
    claim_id    number(19) not null,
    leased_at   timestamp(6) not null,
    lease_until timestamp(6) not null,
    worker_name varchar2(200 char),
    has_cancels number(1),
    progress    clob,
    constraint rowq_claim_pk primary key (queue_id, claim_id)
        using index (
            create unique index rowq_claim_pk on rowq_claim (queue_id, claim_id) initrans 32
        )
)
segment creation immediate
initrans 32 pctfree 20
lob (progress) store as securefile rowq_claim_progress (enable storage in row cache)
/
create sequence rowq_claim_seq start with 1 increment by 1 cache 1000 noorder
/

-- A row is a message of a claim, and the key is the order of delivery. A message is always taken
-- through its claim, which is locked first, so nobody waits for a row here. The table is
-- index-organized, because a row is its key and a few bytes more, and is written and deleted once.
-- is_cancelled is 1 for a message that was cancelled while the worker had it, and else null.
create table rowq_leased (
    queue_id     number(10) not null,
    claim_id     number(19) not null,
    place        number(5) not null,
    message_id   number(19) not null,
    lane         number(2) not null,
    attempt      number(5) not null,
    is_cancelled number(1),
    constraint rowq_leased_pk primary key (queue_id, claim_id, place)
)
organization index initrans 32
/

-- A row is a message that failed for good. It stays until it is reset, cancelled or purged. The
-- reason is in message.last_error. holds_slot is 1 where it has kept the slot of its group, and
-- else null.
create table rowq_dead (
    queue_id   number(10) not null,
    message_id number(19) not null,
    lane       number(2) not null,
    attempt    number(5) not null,
    died_at    timestamp(6) not null,
    holds_slot number(1),
    constraint rowq_dead_pk primary key (queue_id, message_id)
        using index (
            create unique index rowq_dead_pk on rowq_dead (queue_id, message_id) initrans 32
        )
)
segment creation immediate
initrans 32
/

-- A row is the dedup key of an unfinished message, kept as bytes, so that it is compared exactly
-- whatever NLS_COMP and NLS_SORT a session has. Only messages that have a key are here: in one
-- table with a nullable key, a unique index would reject a second message without one.
create table rowq_dedup (
    queue_id   number(10) not null,
    dedup_key  raw(800) not null,
    message_id number(19) not null,
    constraint rowq_dedup_pk primary key (queue_id, dedup_key)
)
organization index initrans 32
/

-- A row is a finished message of a queue that keeps an archive. It stays until the archive routine
-- has moved it. The messages that one call has finished have the same finish_id.
create table rowq_finished (
    queue_id    number(10) not null,
    finish_id   number(19) not null,
    message_id  number(19) not null,
    lane        number(2) not null,
    attempt     number(5) not null,
    state       varchar2(20 char) not null,
    finished_at timestamp(6) not null,
    constraint rowq_finished_pk primary key (queue_id, finish_id, message_id)
)
organization index initrans 32
/

-- A row is a finished message, kept for the queue's archive_days. The table is a plain one, because
-- partitions are an option that has to be paid for, and only the DBA knows whether it is.
-- partition_archive.sql turns it into a table with a partition a day; the routines look which of
-- the two they find.
create table rowq_archive (
    queue_id     number(10) not null,
    finished_at  timestamp(6) not null,
    message_id   number(19) not null,
    lane         number(2) not null,
    attempt      number(5) not null,
    enqueued_at  timestamp(6) not null,
    state        varchar2(20 char) not null,
    message_type varchar2(200 char),
    dedup_key    varchar2(200 char),
    headers      clob,
    body         clob,
    body_binary  blob,
    group_key    varchar2(200 char),
    constraint rowq_archive_pk primary key (queue_id, finished_at, message_id)
)
segment creation immediate
lob (headers) store as securefile rowq_archive_headers (enable storage in row)
lob (body) store as securefile rowq_archive_body (enable storage in row)
lob (body_binary) store as securefile rowq_archive_binary (enable storage in row)
/
create index rowq_archive_message_ix on rowq_archive (queue_id, message_id)
/

-- A row is a slot: the right of one message of a group to be ready, leased or delayed for a retry.
-- It does not say whose it is: whoever finishes a message of the group passes one on or gives it
-- back, in the transaction that ends the message. A producer whose message joins the group locks
-- the rows that nobody holds, so that nobody gives the last one back while a message is coming. It
-- also sets joined_at, so that a serializable transaction, which cannot see the message, cannot
-- lock the row either (ORA-08177). The key is kept as bytes, as in rowq_dedup.
create table rowq_group_slot (
    queue_id   number(10) not null,
    group_key  raw(800) not null,
    slot_no    number(3) not null,
    joined_at  timestamp(6),
    constraint rowq_group_slot_pk primary key (queue_id, group_key, slot_no)
)
organization index initrans 32
/

-- A row is a message that waits behind others of its group, kept apart so that dequeue does not
-- read it. Its last error is in rowq_message, and it has no attempt yet.
create table rowq_group_waiting (
    queue_id   number(10) not null,
    group_key  raw(800) not null,
    message_id number(19) not null,
    lane       number(2) not null,
    constraint rowq_group_waiting_pk primary key (queue_id, group_key, message_id)
)
organization index initrans 32
/

-- A row is something that has to be looked at again, because another transaction held what was
-- looked at, or because there was too much of it. With a group_key it is a slot that its last
-- owner could not pass on, or whose group rests; is_hint says that there may be no slot: a message
-- waits whose producer could lock no slot of the group, or the group's limit was raised. With a
-- message_id it is a blocked message that waits for nothing any more, perhaps. With a
-- predecessor_id it is a message that has ended, of which not all successors were freed; is_hint
-- says that it is dead. With the same id as both it is a message that has ended, and whose row
-- another transaction had locked. maintain looks at what is due, and a dequeue that finds nothing
-- looks at the groups among it, once lane -4 is open.
create table rowq_deferred (
    queue_id       number(10) not null,
    due_at         timestamp(6) not null,
    deferred_id    number(19) not null,
    group_key      raw(800),
    is_hint        number(1) default 0 not null,
    message_id     number(19),
    predecessor_id number(19),
    constraint rowq_deferred_pk primary key (queue_id, due_at, deferred_id),
    constraint rowq_deferred_is_hint_ck check (is_hint in (0, 1))
)
organization index initrans 32
/

-- A row is a message that waits for others to end, its predecessors, kept apart so that dequeue
-- does not read it. It waits for one of them at a time, the newest that has not ended
-- (predecessor_id, with a row in successor); remaining_ids are the others that it may still have to
-- ask for, newest first, as a JSON array. Rows are found by their whole keys; only purge_queue goes
-- from one to the next. The table is a heap with an index, because a row may have a long list.
create table rowq_blocked (
    queue_id       number(10) not null,
    message_id     number(19) not null,
    lane           number(2) not null,
    predecessor_id number(19),
    due_at         timestamp(6),
    on_dead        varchar2(20 char),
    group_key      varchar2(200 char),
    remaining_ids  clob,
    constraint rowq_blocked_pk primary key (queue_id, message_id)
        using index (
            create unique index rowq_blocked_pk on rowq_blocked (queue_id, message_id) initrans 32
        )
)
segment creation immediate
initrans 32 pctfree 20
lob (remaining_ids) store as securefile rowq_blocked_remaining (enable storage in row cache)
/

-- A row says which message waits for which other one. Whoever ends a message whose has_successors
-- is 1 deletes its rows, in the same transaction.
create table rowq_successor (
    queue_id       number(10) not null,
    predecessor_id number(19) not null,
    message_id     number(19) not null,
    constraint rowq_successor_pk primary key (queue_id, predecessor_id, message_id)
)
organization index initrans 32
/

-- A row is one of the buckets of a queue. Whoever adds a slot to a group locks the group's bucket,
-- the one that a hash of its key names, and never changes it. A slot that is not committed is
-- visible to nobody, an insert of the same one waits for its transaction, and this server has no
-- limit for that wait. So a worker, which must not wait for a producer, adds a slot only where it
-- can lock the bucket. A producer goes on without the bucket: it may wait. It is the same with
-- dedup keys that are a schedule's, which maintain adds.
create table rowq_lock_bucket (
    queue_id number(10) not null,
    bucket_no number(2) not null,
    constraint rowq_lock_bucket_pk primary key (queue_id, bucket_no)
)
organization index initrans 64 pctfree 40
/

-- A row is the right to take messages of a queue that has limits: a dequeue locks it before it
-- counts what is leased, and sets locked_at, so that a serializable transaction that began before
-- cannot lock it (ORA-08177): it could not see what was leased since. Dequeues of a queue without
-- limits do not touch it.
create table rowq_limit_lock (
    queue_id number(10) not null,
    locked_at timestamp(6),
    constraint rowq_limit_lock_pk primary key (queue_id)
)
organization index initrans 16 pctfree 40
/

-- A row says when a dequeue of a queue with a rate_limit has begun deliveries, and how many. It
-- stays until maintain finds it older than rate_seconds.
create table rowq_started (
    queue_id   number(10) not null,
    started_at timestamp(6) not null,
    claim_id   number(19) not null,
    messages   number(5) not null,
    constraint rowq_started_pk primary key (queue_id, started_at, claim_id)
)
organization index initrans 32
/

-- A row says when maintain looks whether a message has expired, and where it is if it is ready
-- then. Who adds a message adds one, and so does who makes it ready at a new place or gives it
-- back: maintain can forget a row whose message it does not find. A row stays until its moment,
-- also where the message has ended before. So that is no later than a day, and maintain puts it off
-- for another day until the message expires.
create table rowq_expiry (
    queue_id   number(10) not null,
    expires_at timestamp(6) not null,
    expiry_id  number(19) not null,
    message_id number(19) not null,
    lane       number(2),
    seq        number(19),
    constraint rowq_expiry_pk primary key (queue_id, expires_at, expiry_id)
)
organization index initrans 32
/

-- A row says how a message has ended, in a queue with result_seconds. It stays until maintain finds
-- it older than these, or the message, which is dead, is reset. A result is JSON text as complete
-- was given it. The server of 19c takes no text or number by itself for JSON, so nothing checks it
-- here.
create table rowq_result (
    queue_id    number(10) not null,
    message_id  number(19) not null,
    finished_at timestamp(6) not null,
    state       varchar2(20 char) not null,
    result      clob,
    last_error  clob,
    constraint rowq_result_pk primary key (queue_id, message_id)
        using index (
            create unique index rowq_result_pk on rowq_result (queue_id, message_id) initrans 32
        ),
    constraint rowq_result_state_ck check (state in ('completed', 'cancelled', 'expired', 'dead'))
)
segment creation immediate
initrans 32 pctfree 10
lob (result) store as securefile rowq_result_result (enable storage in row cache)
lob (last_error) store as securefile rowq_result_error (enable storage in row cache)
/
create index rowq_result_finished_ix on rowq_result (queue_id, finished_at) initrans 32
/

-- A row is an attempt that has ended, in a queue with history_days. It stays until maintain finds
-- it older than these. There is no partition a day: a partition is dropped by a statement that
-- commits, and that whoever finishes messages would wait for. Rows are only added and deleted.
create table rowq_history (
    queue_id    number(10) not null,
    ended_at    timestamp(6) not null,
    message_id  number(19) not null,
    claim_id    number(19) not null,
    attempt     number(5) not null,
    leased_at   timestamp(6) not null,
    outcome     varchar2(20 char) not null,
    worker_name varchar2(200 char),
    error       clob,
    constraint rowq_history_pk primary key (queue_id, ended_at, message_id, claim_id)
        using index (
            create unique index rowq_history_pk
                on rowq_history (queue_id, ended_at, message_id, claim_id) initrans 32
        ),
    constraint rowq_history_outcome_ck check (
        outcome in ('completed', 'retrying', 'dead', 'released', 'lease_expired', 'cancelled')
    )
)
segment creation immediate
initrans 32 pctfree 5
lob (error) store as securefile rowq_history_error (enable storage in row cache)
/
create index rowq_history_message_ix on rowq_history (queue_id, message_id) initrans 32
/

-- A row is a schedule: maintain adds its message to the queue in the transaction that moves
-- next_run_at on. next_run_at is null while it is paused, and after its last tick. schedule_key is
-- what is compared: the bytes of the name, whatever NLS_COMP and NLS_SORT a session has. The
-- foreign key needs no index of its own, because queue_id stands first in the primary key; it makes
-- an insert fail that has waited for drop_queue.
create table rowq_schedule (
    queue_id         number(10) not null,
    schedule_key     raw(400) not null,
    schedule_name    varchar2(100 char) not null,
    cron             varchar2(200 char),
    interval_seconds number,
    time_zone        varchar2(100 char) not null,
    missed           varchar2(10 char) not null,
    overlap          number(1) not null,
    starts_at        timestamp(6) not null,
    ends_at          timestamp(6),
    message_type     varchar2(200 char),
    priority         number(1) not null,
    group_key        varchar2(200 char),
    max_attempts     number(5),
    is_paused        number(1) default 0 not null,
    next_run_at      timestamp(6),
    last_run_at      timestamp(6),
    last_message_id  number(19),
    last_error       varchar2(1000 char),
    headers          clob,
    body             clob,
    body_binary      blob,
    constraint rowq_schedule_pk primary key (queue_id, schedule_key),
    constraint rowq_schedule_queue_fk foreign key (queue_id) references rowq_queue (queue_id),
    constraint rowq_schedule_cron_ck check (
        cron is null and interval_seconds is not null
        or cron is not null and interval_seconds is null
    ),
    constraint rowq_schedule_missed_ck check (missed in ('skip', 'once', 'all')),
    constraint rowq_schedule_overlap_ck check (overlap in (0, 1)),
    constraint rowq_schedule_is_paused_ck check (is_paused in (0, 1)),
    constraint rowq_schedule_headers_ck check (headers is json strict)
)
segment creation immediate
initrans 16 pctfree 40
lob (headers) store as securefile rowq_schedule_headers (enable storage in row cache)
lob (body) store as securefile rowq_schedule_body (enable storage in row cache)
lob (body_binary) store as securefile rowq_schedule_binary (enable storage in row cache)
/

-- A row says that a queue gets what is published under the topics that a pattern matches. Patterns
-- are compared as bytes, and never by "like", which follows the NLS_COMP and NLS_SORT of a session:
-- a topic matches one pattern of each shape and no other, so those that it may match are put
-- together from its words and found by their key. shape has a digit for each word of the pattern.
-- Bindings are few and seldom change, and a producer locks none of them. The foreign key needs no
-- index of its own, because queue_id stands first in the primary key.
create table rowq_topic_binding (
    queue_id      number(10) not null,
    pattern_key   raw(200) not null,
    topic_pattern varchar2(200 char) not null,
    prefix_key    raw(200) not null,
    shape         varchar2(100 char) not null,
    constraint rowq_topic_binding_pk primary key (queue_id, pattern_key),
    constraint rowq_topic_binding_queue_fk foreign key (queue_id) references rowq_queue (queue_id)
)
segment creation immediate
/
create index rowq_topic_binding_prefix_ix on rowq_topic_binding (prefix_key, shape)
/
create index rowq_topic_binding_key_ix on rowq_topic_binding (pattern_key, queue_id)
/

-- A row is a worker process that has reported. It is deleted when the worker ends; one that was
-- killed is deleted an hour after its last report, by the report of another worker of the queue.
-- The rates are those between the last two reports. worker_key is what is compared: the bytes of
-- worker_id, whatever NLS_COMP and NLS_SORT a session has. The foreign key needs no index of its
-- own, because queue_id stands first in the primary key; it makes an insert fail that has waited
-- for drop_queue.
create table rowq_worker (
    queue_id             number(10) not null,
    worker_key           raw(64) not null,
    worker_id            varchar2(64 char) not null,
    worker_name          varchar2(200 char),
    host_name            varchar2(200 char),
    worker_version       varchar2(200 char),
    threads              number(10) not null,
    started_at           timestamp(6) not null,
    last_seen_at         timestamp(6) not null,
    completed            number(19) not null,
    failed               number(19) not null,
    completed_per_second number default 0 not null,
    failed_per_second    number default 0 not null,
    constraint rowq_worker_pk primary key (queue_id, worker_key),
    constraint rowq_worker_queue_fk foreign key (queue_id) references rowq_queue (queue_id)
)
segment creation immediate
initrans 16 pctfree 40
/
