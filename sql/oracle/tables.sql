-- Tables, sequences and types of rowq on Oracle, in the order of installation.
--
-- rowq_queue holds the settings, rowq_message the bodies. A message waits in rowq_ready,
-- rowq_delayed, rowq_group_waiting or rowq_blocked, is leased in rowq_claim and rowq_leased, and
-- ends in rowq_finished and rowq_archive or in rowq_dead. The other tables belong to features: a
-- queue that does not use one has no rows there. drop_queue deletes a queue's rows everywhere.
-- Tables that many sessions change reserve lock entries in each block (initrans). Not tested on SQL
-- Server and Oracle.
--
-- Each table is a unit: an upgrade installs the units that changed. statistics.sql runs after them.

-- One row per fact about the installation. Migrations write schema_version and rowq_version.
-- maintain writes its last error for a queue to maintain_fault.<queue_id>, and deletes it when it
-- succeeds. archive_dropped_before is the day before which maintain has dropped partitions.
create table rowq_meta (
    name       varchar2(100 char) not null,
    value      varchar2(500 char) not null,
    changed_at timestamp(6) default sys_extract_utc(systimestamp) not null,
    constraint rowq_meta_pk primary key (name)
)
segment creation immediate
/

-- Collections known to SQL: lists of ids for callers in PL/SQL, and the rows that routines build
-- before they return them. No table uses them, so they can be replaced.
create or replace type rowq_ids force as table of number(19)
/
-- Timestamps, one per row of a result.
create or replace type rowq_moments force as table of timestamp(6)
/
-- One message in a result; an attribute that the routine does not use is null.
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
-- Bytes of the first words of topics, or of patterns.
create or replace type rowq_keys force as table of raw(400)
/
-- A pattern that a message's topic matches; place is the position of the message in its batch.
create or replace type rowq_topic_key force as object (
    place       number(10),
    pattern_key raw(400)
)
/
create or replace type rowq_topic_keys force as table of rowq_topic_key
/
-- A message that publish has enqueued in a queue; line_no is its position in the result.
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
-- What maintain did for one queue.
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
-- How many messages of one queue are in each state.
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
-- One check of health, with the values at which it becomes a warning and critical.
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
-- One reason why a message is not delivered.
create or replace type rowq_reason force as object (
    place       number(10),
    reason      varchar2(20 char),
    clears_at   timestamp(6),
    blocking_id number(19),
    claim_id    number(19),
    worker_name varchar2(200 char),
    detail      varchar2(500 char)
)
/
create or replace type rowq_reasons force as table of rowq_reason
/

-- One row per queue: its settings. create_queue inserts it, alter_queue, pause_queue and
-- resume_queue change it, drop_queue deletes it. A queue_id is never reused. queue_key is compared:
-- the bytes of the name, so that case, accents and trailing blanks matter under any NLS_COMP and
-- NLS_SORT. All times are UTC. A session waits to be woken until waiting_until (wakeup.sql);
-- without wakeup.sql it is null. initrans and pctfree reserve many lock entries, because waiters of
-- many queues write here at the same time.
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
    constraint rowq_queue_attempts_ck check (max_attempts between 0 and 10000),
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

-- One row per lane. create_queue inserts 20 for messages (priority * 2, plus 1 for the tail) and
-- those below 0, which are other tables: -1 claim (claim_id), -2 delayed (due_at), -3 finished
-- (finish_id), -4 deferred (due_at), -5 started (started_at), -6 expiry (expires_at), -7 result
-- (finished_at), -8 history (ended_at); times in microseconds since 1970.
--
-- floor_seq is where the live rows of the lane begin. It is approximate: readers skip the emptied
-- index blocks below it. Only maintain moves it (internal_rescan_floors), at most to half a second
-- before now. It scans from 0, so a wrong floor delays a message and never loses one. The session
-- elected to run maintain locks the row of lane -1. dequeue does not read a closed lane, one that
-- was never used; of those below 0 only lane -4 is ever opened. initrans and pctfree reserve lock
-- entries in the few blocks.
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

-- One row per message. enqueue, publish or a schedule inserts it, and the transaction that ends the
-- message deletes it (maintain, if the queue has archive_days). A failure updates last_error and
-- due_at. A producer that names the message as a predecessor sets has_successors to 1, every time:
-- a serializable transaction that does not see the successor then cannot lock or delete the row
-- (ORA-08177). lane and seq, its first position in ready, find a message that was never returned;
-- due_at is its last position in delayed. The foreign key needs no index, because queue_id is first
-- in the primary key; it fails an insert that has waited for drop_queue. An empty text body is an
-- empty CLOB, which is not null. A LOB of up to about 4000 bytes is in the row.
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
    producer_name  varchar2(200 char),
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

-- One row per message that a worker can lease, never updated. enqueue, promote, reap, release,
-- reset and the calls that resume a message insert it; dequeue deletes it, or cancel, purge_queue
-- or an expiry. The primary key is the dequeue order, and there is no second index. lane is
-- priority * 2, plus 1 for the tail: a released or reaped message goes to the front lane. seq is
-- the time of insertion, in microseconds since 1970 UTC, plus the position in its batch: no
-- sequence orders the producers. message_id breaks ties. The table is a heap with an index, because
-- the physical rowid deletes what the cursor has locked without a second search. initrans gives
-- sessions their lock entries from the start, because a full block cannot add one ("enq: TX -
-- allocate ITL entry"); pctfree leaves space for more.
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

-- One row per message that is not due yet, so that dequeue does not read it. enqueue and
-- retry_later insert it; promote deletes it, or cancel, purge_queue or an expiry. The primary key,
-- the only index, is the order in which messages become due. group_key is set if the message joins
-- its group when it is due; a retried message has its slot already.
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

-- One row per claim: the lease of one dequeue, whose messages are in rowq_leased. dequeue inserts
-- it, extend_lease updates lease_until, which is in no index, and the finishing routines and reap
-- delete it. claim_id is the fencing token; finish_id of rowq_finished is from the same sequence. A
-- session that cancels messages of the batch sets has_cancels to 1, every time: a serializable
-- transaction that does not see the cancel then cannot lock or delete the row (ORA-08177). progress
-- is a CLOB, because 2000 characters may need more bytes than a varchar2 holds.
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
-- Claims start at the microseconds since 1970, so that two servers never give out the same claim:
-- an old worker's claim is unknown on a newer server.
declare
    v_last number;
begin
    select max(s.last_number) into v_last
    from user_sequences s
    where s.sequence_name = 'ROWQ_CLAIM_SEQ';
    if v_last = 1 then
        execute immediate 'alter sequence rowq_claim_seq restart start with ' || to_char(
            round((cast(sys_extract_utc(systimestamp) as date) - date '1970-01-01') * 86400)
            * 1000000,
            'fm99999999999999999999'
        );
    end if;
end;
/

-- One row per leased message. The key is the delivery order. A session locks the claim first, so no
-- session waits for a row here. The table is index-organized, because a row is little more than its
-- key, and is inserted and deleted once. is_cancelled is 1 for a message that was cancelled while
-- leased, else null.
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

-- One row per dead message. fail_now, retry_later, reap or a dead predecessor inserts it; reset,
-- discard_dead, cancel or purge_queue deletes it. Its error is message.last_error. holds_slot is 1
-- if the message keeps its group slot, else null.
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

-- One row per dedup key of an unfinished message, as bytes, so that it is compared exactly under
-- any NLS_COMP and NLS_SORT. enqueue or reset inserts it; the transaction that ends the message or
-- makes it dead deletes it. A nullable key in rowq_message would not do: a unique index would
-- reject a second message without a key.
create table rowq_dedup (
    queue_id   number(10) not null,
    dedup_key  raw(800) not null,
    message_id number(19) not null,
    constraint rowq_dedup_pk primary key (queue_id, dedup_key)
)
organization index initrans 32
/

-- One row per ended message of a queue with archive_days. The finishing routines insert it, one
-- finish_id per call; maintain moves it to rowq_archive.
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

-- One row per archived message. maintain inserts and purges it. The table is not partitioned,
-- because partitioning is a paid option; partition_archive.sql gives it a partition per day, and
-- the routines handle both.
create table rowq_archive (
    queue_id      number(10) not null,
    finished_at   timestamp(6) not null,
    message_id    number(19) not null,
    lane          number(2) not null,
    attempt       number(5) not null,
    enqueued_at   timestamp(6) not null,
    state         varchar2(20 char) not null,
    message_type  varchar2(200 char),
    dedup_key     varchar2(200 char),
    headers       clob,
    body          clob,
    body_binary   blob,
    group_key     varchar2(200 char),
    producer_name varchar2(200 char),
    constraint rowq_archive_pk primary key (queue_id, finished_at, message_id)
)
segment creation immediate
lob (headers) store as securefile rowq_archive_headers (enable storage in row)
lob (body) store as securefile rowq_archive_body (enable storage in row)
lob (body_binary) store as securefile rowq_archive_binary (enable storage in row)
/
create index rowq_archive_message_ix on rowq_archive (queue_id, message_id)
/

-- One row per slot: the right of one message of a group to be ready, leased or delayed for a retry.
-- A producer inserts it; the transaction that ends a message of the group passes it to the next one
-- or deletes it. It does not name its message. A producer whose message joins the group locks the
-- free rows, so that the last one is not deleted while its message is uncommitted. It also sets
-- joined_at, so that a serializable transaction, which does not see the message, cannot lock the
-- row (ORA-08177). The key is bytes, as in rowq_dedup.
create table rowq_group_slot (
    queue_id   number(10) not null,
    group_key  raw(800) not null,
    slot_no    number(3) not null,
    joined_at  timestamp(6),
    constraint rowq_group_slot_pk primary key (queue_id, group_key, slot_no)
)
organization index initrans 32
/

-- One row per message that waits for a slot of its group, so that dequeue does not read it. The end
-- of another message of the group deletes it, or cancel, purge_queue or an expiry. Its last error
-- is in rowq_message.
create table rowq_group_waiting (
    queue_id   number(10) not null,
    group_key  raw(800) not null,
    message_id number(19) not null,
    lane       number(2) not null,
    constraint rowq_group_waiting_pk primary key (queue_id, group_key, message_id)
)
organization index initrans 32
/

-- One row per deferred action. A call inserts it if another transaction holds what it needs, or if
-- there is too much to do; maintain runs and deletes it when due. A dequeue that finds nothing runs
-- those of groups, once lane -4 is open.
-- - group_key: a slot that could not be passed on, or whose group pauses. With is_hint there may be
--   no slot: the producer of a waiting message could lock none, or group_limit was raised.
-- - message_id: a blocked message that may have no unfinished predecessor.
-- - predecessor_id: an ended message whose successors are not all resumed. With is_hint it is dead.
-- - message_id = predecessor_id: an ended message whose row another transaction had locked.
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

-- One row per message with unfinished predecessors, so that dequeue does not read it. It waits for
-- one at a time, the newest unfinished (predecessor_id, with a row in successor); remaining_ids are
-- the others, newest first, as a JSON array. The transaction that ends the last predecessor deletes
-- it. Rows are found by their full keys; only purge_queue scans. The table is a heap with an index,
-- because the list may be long.
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

-- One row per blocked message: message_id waits for predecessor_id. The transaction that ends the
-- predecessor deletes it.
create table rowq_successor (
    queue_id       number(10) not null,
    predecessor_id number(19) not null,
    message_id     number(19) not null,
    constraint rowq_successor_pk primary key (queue_id, predecessor_id, message_id)
)
organization index initrans 32
/

-- One row per lock bucket of a queue, 64 in all, never changed. A session that adds a slot to a
-- group locks the bucket of the group's hash. An uncommitted slot is invisible, inserting the same
-- one waits for its transaction, and this server has no timeout for that wait. So a worker, which
-- must not wait for a producer, adds a slot only if it can lock the bucket; a producer may wait.
-- The same holds for dedup keys of schedules, which maintain adds.
create table rowq_lock_bucket (
    queue_id number(10) not null,
    bucket_no number(2) not null,
    constraint rowq_lock_bucket_pk primary key (queue_id, bucket_no)
)
organization index initrans 64 pctfree 40
/

-- One row per queue. A dequeue from a limited queue locks it before counting, and sets locked_at,
-- so that an older serializable transaction, which does not see what was leased since, cannot lock
-- it (ORA-08177).
create table rowq_limit_lock (
    queue_id number(10) not null,
    locked_at timestamp(6),
    constraint rowq_limit_lock_pk primary key (queue_id)
)
organization index initrans 16 pctfree 40
/

-- One row per dequeue from a queue with a rate_limit: when it started how many deliveries. maintain
-- deletes it once it is older than rate_seconds.
create table rowq_started (
    queue_id   number(10) not null,
    started_at timestamp(6) not null,
    claim_id   number(19) not null,
    messages   number(5) not null,
    constraint rowq_started_pk primary key (queue_id, started_at, claim_id)
)
organization index initrans 32
/

-- One row per time at which maintain checks a message for expiry, and where it is if it is ready
-- then. A producer inserts it, and so does any call that moves the message to a new position.
-- maintain deletes it at its time, also if the message has ended. So the time is at most a day
-- ahead, and maintain postpones it by a day until the message expires.
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

-- One row per ended message of a queue with result_seconds. The transaction that ends the message
-- inserts it; maintain deletes it when it is too old, and reset that of a dead message. A result is
-- the JSON text passed to complete, without a check: Oracle 19c does not accept a text or number as
-- JSON.
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

-- One row per ended attempt in a queue with history_days. The call that ends the attempt inserts
-- it; maintain deletes it when it is too old. There are no partitions: dropping one commits, and
-- sessions that finish messages would wait.
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
        outcome in (
            'completed', 'retrying', 'dead', 'released', 'snoozed', 'lease_expired', 'cancelled'
        )
    )
)
segment creation immediate
initrans 32 pctfree 5
lob (error) store as securefile rowq_history_error (enable storage in row cache)
/
create index rowq_history_message_ix on rowq_history (queue_id, message_id) initrans 32
/

-- One row per schedule. create_schedule inserts it, drop_schedule deletes it. maintain enqueues its
-- message in the transaction that advances next_run_at, which is null while the schedule is paused
-- and after its last tick. schedule_key is compared: the bytes of the name. The foreign key needs
-- no index, because queue_id is first in the primary key; it fails an insert that has waited for
-- drop_queue. is_running is 1 while a schedule that counts from the end waits for the end of a
-- message.
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
    counts_from      varchar2(10 char) default 'start' not null,
    is_running       number(1) default 0 not null,
    constraint rowq_schedule_pk primary key (queue_id, schedule_key),
    constraint rowq_schedule_queue_fk foreign key (queue_id) references rowq_queue (queue_id),
    constraint rowq_schedule_cron_ck check (
        cron is null and interval_seconds is not null
        or cron is not null and interval_seconds is null
    ),
    constraint rowq_schedule_missed_ck check (missed in ('skip', 'once', 'all')),
    constraint rowq_schedule_overlap_ck check (overlap in (0, 1)),
    constraint rowq_schedule_is_paused_ck check (is_paused in (0, 1)),
    constraint rowq_schedule_counts_from_ck check (counts_from in ('start', 'end')),
    constraint rowq_schedule_is_running_ck check (is_running in (0, 1)),
    constraint rowq_schedule_headers_ck check (headers is json strict)
)
segment creation immediate
initrans 16 pctfree 40
lob (headers) store as securefile rowq_schedule_headers (enable storage in row cache)
lob (body) store as securefile rowq_schedule_body (enable storage in row cache)
lob (body_binary) store as securefile rowq_schedule_binary (enable storage in row cache)
/

-- One row per topic pattern of a queue. bind_topic inserts it, unbind_topic deletes it, and
-- producers lock none. Patterns are compared as bytes, never by "like", which depends on NLS_COMP
-- and NLS_SORT: a topic matches one pattern of each shape, so the candidates are built from its
-- words and found by key. shape has a digit per word of the pattern: 1 for "*", 2 for "#", 0 for
-- any other. The foreign key needs no index, because queue_id is first in the primary key.
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

-- One row per worker process. report_worker inserts, updates and deletes it, and deletes those of
-- killed workers after an hour. The rates are those between the last two reports. worker_key is
-- compared: the bytes of worker_id. The foreign key needs no index, because queue_id is first in
-- the primary key; it fails an insert that has waited for drop_queue.
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
