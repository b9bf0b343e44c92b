-- Tables and table types of rowq on SQL Server, in the order of installation.
--
-- queue holds the settings, message the bodies. A message waits in ready, delayed, group_waiting or
-- blocked, is leased in claim and leased, and ends in finished and archived or in dead. The other
-- tables belong to features: a queue that does not use one has no rows there. drop_queue deletes a
-- queue's rows everywhere. A hot table has one clustered key, no page locks, no lock escalation and
-- no new statistics. Not tested on SQL Server and Oracle.
--
-- Each statement can run again. Each table is a unit: an upgrade installs the units that changed.

set quoted_identifier on;
set ansi_nulls on;
go

-- The schema and its two sequences. Everything has one owner: routines reach the tables by
-- ownership chaining, and no other account has a right on them. The owner is not dbo: many users
-- may write procedures of dbo, and SQL Server does not check the rights of a procedure's caller on
-- tables of the procedure's owner. Code that runs as rowq_owner has no right outside of rowq except
-- for partitions (grants.sql). The numbers are unique but not the order of messages; of two records
-- about one message the later has the higher number. A dequeue without a message uses one up, and a
-- crash loses those in the cache.
if (select d.compatibility_level from sys.databases d where d.name = db_name()) < 140
    throw 50000, N'rowq needs SQL Server 2017 and a compatibility level of 140 or more', 1;
go
if user_id(N'rowq_owner') is null
    create user rowq_owner without login;
go
if schema_id(N'rowq') is null
    exec (N'create schema rowq authorization rowq_owner');
go
if object_id(N'rowq.message_seq') is null
create sequence rowq.message_seq as bigint start with 1 increment by 1 no cycle cache 1000;
go
if object_id(N'rowq.claim_seq') is null
create sequence rowq.claim_seq as bigint start with 1 increment by 1 no cycle cache 1000;
go
-- Claims start at the microseconds since 1970, so that two servers never give out the same claim:
-- an old worker's claim is unknown on a newer server.
declare @restart nvarchar(200) = concat(
    N'alter sequence rowq.claim_seq restart with ',
    datediff_big(microsecond, '1970-01-01', sysutcdatetime())
);
if exists (
    select 1
    from sys.sequences s
    where s.object_id = object_id(N'rowq.claim_seq')
      and cast(s.current_value as bigint) = 1
)
    exec sys.sp_executesql @restart;
go

-- Internal procedures pass these lists to each other; no table stores them, and callers never see
-- them.
-- - message_list: place is the position in delivery order; group_key (bytes and a dot) is set if
--   the message takes or releases a slot; is_without_slot is 1 if it has none, is_cancelled if it
--   was cancelled while leased.
-- - link_list: what the end of a message releases: dedup key, group slot, successors (is_awaited is
--   1 or null).
-- - new_list: the messages of a batch, including those that are not added; owner is the unfinished
--   message that has the dedup key; key_bytes and group_key are bytes and a dot.
-- - input_list: one row per key of each message of a batch, in order, so that nothing is sorted;
--   value is cut to 402 UTF-16 units; size counts characters, or bytes of a binary body.
-- - parsed_list: the messages of a batch with their short columns; key_place numbers those with the
--   same dedup key.
if type_id(N'rowq.message_list') is null
create type rowq.message_list as table (
    message_id   bigint not null primary key clustered,
    lane         smallint not null,
    place        bigint not null,
    attempt      smallint not null,
    due_at       datetime2(6) null,
    group_key    varbinary(802) null,
    is_without_slot bit null,
    is_cancelled bit null
);
go
if type_id(N'rowq.link_list') is null
create type rowq.link_list as table (
    message_id bigint not null primary key clustered,
    dedup_key  nvarchar(400) collate Latin1_General_100_BIN2 null,
    group_key  nvarchar(400) collate Latin1_General_100_BIN2 null,
    is_awaited bit null
);
go
if type_id(N'rowq.new_list') is null
create type rowq.new_list as table (
    position   int not null primary key clustered,
    message_id bigint not null,
    key_bytes  varbinary(802) null,
    key_place int not null,
    lane      smallint not null,
    due_at    datetime2(6) null,
    owner     bigint null,
    group_key  varbinary(802) null,
    on_dead    nvarchar(20) collate Latin1_General_100_BIN2 null
);
go
if type_id(N'rowq.input_list') is null
create type rowq.input_list as table (
    position  int not null,
    name      nvarchar(60) collate Latin1_General_100_BIN2 null,
    kind      tinyint not null,
    value     nvarchar(402) collate Latin1_General_100_BIN2 null,
    size      bigint null,
    is_base64 bit not null,
    moment    datetime2(6) null,
    index input_list_ix clustered (position)
);
go
if type_id(N'rowq.parsed_list') is null
create type rowq.parsed_list as table (
    position       int not null primary key clustered,
    lane           smallint not null,
    delay_seconds  float null,
    run_at         datetime2(6) null,
    message_type   nvarchar(400) collate Latin1_General_100_BIN2 null,
    dedup_key      nvarchar(400) collate Latin1_General_100_BIN2 null,
    key_place      int not null,
    max_attempts   smallint null,
    group_key      nvarchar(400) collate Latin1_General_100_BIN2 null,
    on_dead        nvarchar(20) collate Latin1_General_100_BIN2 null,
    expire_seconds float null,
    producer_name  nvarchar(400) collate Latin1_General_100_BIN2 null
);
go

-- One row per fact about the installation: schema_version and rowq_version. Migrations write them.
if object_id(N'rowq.meta') is null
create table rowq.meta (
    name       nvarchar(100) collate Latin1_General_100_BIN2 not null,
    value      nvarchar(100) collate Latin1_General_100_BIN2 not null,
    changed_at datetime2(6) not null constraint meta_changed_at_df default sysutcdatetime(),
    constraint meta_pk primary key clustered (name)
);
go

-- One row per queue: its settings. create_queue inserts it, alter_queue, pause_queue and
-- resume_queue change it, drop_queue deletes it. A queue_id is never reused. queue_key is compared:
-- the bytes of the name and a dot, because SQL Server ignores trailing blanks in texts and trailing
-- zeros in bytes. All times are UTC.
if object_id(N'rowq.queue') is null
create table rowq.queue (
    queue_id             int identity (1, 1) not null,
    queue_key            varbinary(402) not null,
    queue_name           nvarchar(200) collate Latin1_General_100_BIN2 not null,
    lease_seconds        int not null constraint queue_lease_seconds_df default 30,
    max_attempts         smallint not null constraint queue_max_attempts_df default 10,
    backoff_base_seconds float not null constraint queue_backoff_base_seconds_df default 5,
    backoff_factor       float not null constraint queue_backoff_factor_df default 2,
    backoff_cap_seconds  float not null constraint queue_backoff_cap_seconds_df default 3600,
    backoff_jitter       float not null constraint queue_backoff_jitter_df default 0.2,
    archive_days         int not null constraint queue_archive_days_df default 0,
    max_body_length      int not null constraint queue_max_body_length_df default 1048576,
    group_limit          smallint not null constraint queue_group_limit_df default 1,
    group_after_dead     nvarchar(20) collate Latin1_General_100_BIN2 not null
        constraint queue_group_after_dead_df default N'continue',
    group_pause_seconds  float not null constraint queue_group_pause_seconds_df default 0,
    has_deferred         bit not null constraint queue_has_deferred_df default 0,
    max_leased           int not null constraint queue_max_leased_df default 0,
    rate_limit           int not null constraint queue_rate_limit_df default 0,
    rate_seconds         float not null constraint queue_rate_seconds_df default 1,
    result_seconds       float not null constraint queue_result_seconds_df default 0,
    history_days         int not null constraint queue_history_days_df default 0,
    paused_at            datetime2(6) null,
    created_at           datetime2(6) not null,
    constraint queue_pk primary key nonclustered (queue_id),
    constraint queue_queue_key_uq unique clustered (queue_key),
    constraint queue_lease_seconds_ck check (lease_seconds between 1 and 86400),
    constraint queue_max_attempts_ck check (max_attempts between 0 and 10000),
    constraint queue_backoff_base_seconds_ck check (backoff_base_seconds between 0 and 86400),
    constraint queue_backoff_factor_ck check (backoff_factor between 1 and 10),
    constraint queue_backoff_cap_seconds_ck check (backoff_cap_seconds between 0 and 31536000),
    constraint queue_backoff_jitter_ck check (backoff_jitter between 0 and 1),
    constraint queue_archive_days_ck check (archive_days between 0 and 36500),
    constraint queue_max_body_length_ck check (max_body_length between 1 and 33554432),
    constraint queue_group_limit_ck check (group_limit between 1 and 100),
    constraint queue_group_after_dead_ck check (group_after_dead in (N'continue', N'hold')),
    constraint queue_group_pause_seconds_ck check (group_pause_seconds between 0 and 86400),
    constraint queue_max_leased_ck check (max_leased between 0 and 100000),
    constraint queue_rate_limit_ck check (rate_limit between 0 and 100000),
    constraint queue_rate_seconds_ck check (rate_seconds between 0.1e0 and 86400),
    constraint queue_result_seconds_ck check (result_seconds between 0 and 31536000),
    constraint queue_history_days_ck check (history_days between 0 and 36500)
);
go
-- The pages of queue_stats.
if indexproperty(object_id(N'rowq.queue'), N'queue_name_ix', N'IndexID') is null
create nonclustered index queue_name_ix
    on rowq.queue (queue_name, queue_key)
    include (queue_id);
go

-- One row per queue, never changed. A call that adds or moves messages locks it shared until its
-- transaction ends; drop_queue locks it exclusively. It is separate from queue so that pausing and
-- altering never wait for a producer. Row 0 is for no queue: a call in the caller's transaction
-- reads it first, and the lock that this may leave (REPEATABLE READ, SERIALIZABLE) blocks no
-- session.
if object_id(N'rowq.queue_lock') is null
create table rowq.queue_lock (
    queue_id int not null,
    constraint queue_lock_pk primary key clustered (queue_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.queue_lock set (lock_escalation = disable);
go
insert into rowq.queue_lock (queue_id)
select 0
where not exists (select 1 from rowq.queue_lock p where p.queue_id = 0);
go

-- One row per lane. create_queue inserts 20 for messages (priority * 2, plus 1 for the tail) and
-- those below 0, which are other tables: -1 claim (claim_id), -2 delayed (due_at), -3 finished
-- (finished_at), -4 deferred (due_at), -5 started (started_at), -6 expiry (expires_at), -7 result
-- (finished_at), -8 history (ended_at); times in microseconds since 1970.
--
-- floor is where the live rows of the lane begin. It is approximate: readers skip the ghosts below
-- it, deleted rows that the engine keeps while a row version may be needed (by a snapshot, a
-- readable secondary or accelerated recovery). dequeue moves it up past what it leased, at most to
-- half a second before now. maintain scans from 0 and corrects it, so a wrong floor delays a
-- message and never loses one. Rows are read with "readuncommitted", which does not wait, and
-- changed with "xlock, readpast", which skips a row that another session is changing.
--
-- dequeue does not read a closed lane, one that was never used. Lane -3 is closed while the queue
-- has nothing to archive. Lanes -4, -5, -7 and -8 are closed, and their floors not rescanned, until
-- maintain has seen a row there (-8: until the first purge). maintain opens lane -6 before it
-- deletes the first row of expiry.
--
-- Lane -21 elects the session that runs maintain; check_after of that row is when it next checks
-- the days of the archive. Lane -22 is for calls in the caller's transaction: one that leases
-- messages locks it shared until the transaction ends, and a floor moves up only while it is free,
-- so that it never passes rows that a rollback restores.
if object_id(N'rowq.lane') is null
create table rowq.lane (
    queue_id    int not null,
    lane        smallint not null,
    is_open     bit not null constraint lane_is_open_df default 0,
    floor       bigint not null constraint lane_floor_df default 0,
    check_after datetime2(6) not null constraint lane_check_after_df default '19700101',
    constraint lane_pk primary key clustered (queue_id, lane)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.lane set (lock_escalation = disable);
go

-- One row per message. enqueue, publish or a schedule inserts it, and the transaction that ends the
-- message deletes it (maintain, if the queue has archive_days). Only a failure updates last_error
-- and due_at. enqueued_at finds a message that was never returned: its seq in ready is the same
-- time in microseconds. due_at is its last position in delayed. A small body is in the row; a
-- longer one is a LOB that only the join after a dequeue reads. Lengths count UTF-16 units: twice
-- the allowed characters, because some take two units.
if object_id(N'rowq.message') is null
create table rowq.message (
    queue_id      int not null,
    message_id    bigint not null,
    max_attempts  smallint null,
    enqueued_at   datetime2(6) not null,
    due_at        datetime2(6) null,
    expires_at    datetime2(6) null,
    message_type  nvarchar(400) collate Latin1_General_100_BIN2 null,
    dedup_key     nvarchar(400) collate Latin1_General_100_BIN2 null,
    headers       nvarchar(max) collate Latin1_General_100_BIN2 null,
    body          nvarchar(max) collate Latin1_General_100_BIN2 null,
    body_binary   varbinary(max) null,
    last_error    nvarchar(4000) collate Latin1_General_100_BIN2 null,
    group_key     nvarchar(400) collate Latin1_General_100_BIN2 null,
    producer_name nvarchar(400) collate Latin1_General_100_BIN2 null,
    constraint message_pk primary key clustered (queue_id, message_id)
        with (statistics_norecompute = on)
);
go
alter table rowq.message set (lock_escalation = disable);
go

-- One row per message that a worker can lease. enqueue, promote, reap, release, reset and the calls
-- that resume a message insert it; dequeue deletes it, or cancel, purge_queue or an expiry. The
-- clustered key is the dequeue order. There is no second index, so no reader meets a consumer that
-- locks in the opposite order. lane is priority * 2, plus 1 for the tail: a released or reaped
-- message goes to the front lane. seq is the time of insertion, in microseconds since 1970 UTC: no
-- sequence orders the producers, and a row committed late is at most as old as its transaction.
-- message_id breaks ties, which are many: the server's clock moves in steps of up to 16
-- milliseconds. Rows are locked one by one: a reader would wait for a page lock or an escalated one
-- instead of skipping it.
if object_id(N'rowq.ready') is null
create table rowq.ready (
    queue_id   int not null,
    lane       smallint not null,
    seq        bigint not null,
    message_id bigint not null,
    attempt    smallint not null constraint ready_attempt_df default 0,
    constraint ready_pk primary key clustered (queue_id, lane, seq, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.ready set (lock_escalation = disable);
go

-- One row per message that is not due yet, so that dequeue does not read it. enqueue and
-- retry_later insert it; promote deletes it, or cancel, purge_queue or an expiry. The clustered key
-- is the order in which messages become due; message.due_at finds a message here. group_key (bytes
-- and a dot) is set if the message joins its group when it is due; a retried message has its slot
-- already.
if object_id(N'rowq.delayed') is null
create table rowq.delayed (
    queue_id   int not null,
    due_at     datetime2(6) not null,
    message_id bigint not null,
    lane       smallint not null,
    attempt    smallint not null constraint delayed_attempt_df default 0,
    group_key  varbinary(802) null,
    constraint delayed_pk primary key clustered (queue_id, due_at, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.delayed set (lock_escalation = disable);
go

-- One row per claim: the lease of one dequeue, whose messages are in leased. dequeue inserts it,
-- extend_lease updates lease_until and progress, which are in no index, and the finishing routines
-- and reap delete it. has_cancels is 1 once a leased message was cancelled, else null. A session
-- that changes the batch, or its rows in leased, has locked this row.
if object_id(N'rowq.claim') is null
create table rowq.claim (
    queue_id    int not null,
    claim_id    bigint not null,
    leased_at   datetime2(6) not null,
    lease_until datetime2(6) not null,
    worker_name nvarchar(400) collate Latin1_General_100_BIN2 null,
    has_cancels bit null,
    progress    nvarchar(4000) collate Latin1_General_100_BIN2 null,
    constraint claim_pk primary key clustered (queue_id, claim_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.claim set (lock_escalation = disable);
go

-- One row per leased message. The clustered key is the delivery order. dequeue fills it with
-- "output into" from the rows it deletes in ready, which come in this order, and reads it without a
-- sort. "output into" requires a table without triggers, foreign keys and checks. is_cancelled is 1
-- for a message that was cancelled while leased, else null.
if object_id(N'rowq.leased') is null
create table rowq.leased (
    queue_id     int not null,
    claim_id     bigint not null,
    lane         smallint not null,
    seq          bigint not null,
    message_id   bigint not null,
    attempt      smallint not null,
    is_cancelled bit null,
    constraint leased_pk primary key clustered (queue_id, claim_id, lane, seq, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.leased set (lock_escalation = disable);
go

-- One row per dead message. fail_now, retry_later, reap or a dead predecessor inserts it; reset,
-- discard_dead, cancel or purge_queue deletes it. Its error is message.last_error. holds_slot is 1
-- if the message keeps its group slot, else null.
if object_id(N'rowq.dead') is null
create table rowq.dead (
    queue_id   int not null,
    message_id bigint not null,
    lane       smallint not null,
    attempt    smallint not null,
    died_at    datetime2(6) not null,
    holds_slot bit null,
    constraint dead_pk primary key clustered (queue_id, message_id)
        with (statistics_norecompute = on)
);
go
alter table rowq.dead set (lock_escalation = disable);
go

-- One row per dedup key of an unfinished message, as bytes and a dot. enqueue or reset inserts it;
-- the transaction that ends the message or makes it dead deletes it. With ignore_dup_key, inserting
-- an existing key adds no row and raises no error that would make a transaction uncommittable; if
-- the other insert is not committed, it waits. The option is on the clustered key: for a second
-- index the engine would lock key ranges.
if object_id(N'rowq.dedup') is null
create table rowq.dedup (
    queue_id   int not null,
    dedup_key  varbinary(802) not null,
    message_id bigint not null,
    constraint dedup_pk primary key clustered (queue_id, dedup_key)
        with (ignore_dup_key = on, allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.dedup set (lock_escalation = disable);
go

-- One row per slot: the right of one message of a group to be ready, leased or delayed for a retry.
-- A producer inserts it; the transaction that ends a message of the group passes it to the next one
-- or deletes it. It does not name its message, and is never updated. group_key is bytes and a dot.
-- Locks, until the transaction ends:
-- - A producer whose message waits in the group locks all slots shared (S).
-- - A session that takes a message out of group_waiting locks one slot for update (U), which is
--   compatible with S, not with another U.
-- - A session that deletes a slot locks all of them exclusively (X): no producer is joining, and no
--   message has been taken out that a rollback would restore.
-- U and X skip locked rows (readpast). A call in the caller's transaction never locks X, so that a
-- producer does not wait for it unless it has opened the group. With ignore_dup_key, inserting an
-- existing number adds no row and raises no error that would make a transaction uncommittable; if
-- the other insert is not committed, it waits.
if object_id(N'rowq.group_slot') is null
create table rowq.group_slot (
    queue_id  int not null,
    group_key varbinary(802) not null,
    slot_no   smallint not null,
    constraint group_slot_pk primary key clustered (queue_id, group_key, slot_no)
        with (ignore_dup_key = on, allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.group_slot set (lock_escalation = disable);
go

-- One row per message that waits for a slot of its group, so that dequeue does not read it. The end
-- of another message of the group deletes it, or cancel, purge_queue or an expiry. The clustered
-- key is the order within a group. group_key is bytes and a dot. See group_slot for the locks.
if object_id(N'rowq.group_waiting') is null
create table rowq.group_waiting (
    queue_id   int not null,
    group_key  varbinary(802) not null,
    message_id bigint not null,
    lane       smallint not null,
    constraint group_waiting_pk primary key clustered (queue_id, group_key, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.group_waiting set (lock_escalation = disable);
go

-- One row per deferred action. A call inserts it if another transaction holds what it needs, if it
-- runs in the caller's transaction, or if there is too much to do; maintain runs and deletes it
-- when due, as does a dequeue that finds nothing, in its own transaction (queue.has_deferred).
-- deferred_id is from the sequence of messages: an identity would change the caller's @@identity.
-- - group_key: a slot that could not be passed on or deleted, or whose group pauses. With is_hint
--   there may be no slot yet: group_limit was raised.
-- - message_id: a blocked message that may have no unfinished predecessor.
-- - predecessor_id: an ended message whose successors are not all resumed. With is_hint it is dead.
-- - message_id = predecessor_id: an ended message whose row another transaction had locked.
if object_id(N'rowq.deferred') is null
create table rowq.deferred (
    queue_id       int not null,
    due_at         datetime2(6) not null,
    deferred_id    bigint not null,
    message_id     bigint null,
    predecessor_id bigint null,
    group_key      varbinary(802) null,
    is_hint        bit not null constraint deferred_is_hint_df default 0,
    constraint deferred_pk primary key clustered (queue_id, due_at, deferred_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.deferred set (lock_escalation = disable);
go

-- One row per message with unfinished predecessors, so that dequeue does not read it. It waits for
-- one at a time, the newest unfinished (predecessor_id, with a row in successor); remaining_ids are
-- the others, newest first, as a JSON array. The transaction that ends the last predecessor deletes
-- it. group_key (bytes and a dot) is set if the message joins its group afterwards.
if object_id(N'rowq.blocked') is null
create table rowq.blocked (
    queue_id       int not null,
    message_id     bigint not null,
    lane           smallint not null,
    predecessor_id bigint null,
    due_at         datetime2(6) null,
    on_dead        nvarchar(20) collate Latin1_General_100_BIN2 null,
    group_key      varbinary(802) null,
    remaining_ids  nvarchar(max) collate Latin1_General_100_BIN2 null,
    constraint blocked_pk primary key clustered (queue_id, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.blocked set (lock_escalation = disable);
go

-- One row per blocked message: message_id waits for predecessor_id; on_dead is that of blocked. The
-- transaction that ends the predecessor deletes it. A producer locks the predecessor's row in
-- message shared (S) until its transaction ends, and only then inserts here. A call that ends that
-- message, or makes it dead, locks its row exclusively (X) before it reads here: it sees the rows
-- of earlier producers, and later ones see the end. If it cannot lock the row, maintain reads here
-- again. The row of message is not changed for this: without row versions its readers, including
-- every dequeue, would wait for the producer.
if object_id(N'rowq.successor') is null
create table rowq.successor (
    queue_id       int not null,
    predecessor_id bigint not null,
    message_id     bigint not null,
    on_dead        nvarchar(20) collate Latin1_General_100_BIN2 null,
    constraint successor_pk primary key clustered (queue_id, predecessor_id, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.successor set (lock_escalation = disable);
go

-- One row per queue, never changed. A dequeue from a limited queue locks it before counting, until
-- its transaction ends.
if object_id(N'rowq.limit_lock') is null
create table rowq.limit_lock (
    queue_id int not null,
    constraint limit_lock_pk primary key clustered (queue_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.limit_lock set (lock_escalation = disable);
go

-- One row per dequeue from a queue with a rate_limit: when it started how many deliveries. maintain
-- deletes it once it is older than rate_seconds.
if object_id(N'rowq.started') is null
create table rowq.started (
    queue_id   int not null,
    started_at datetime2(6) not null,
    claim_id   bigint not null,
    messages   int not null,
    constraint started_pk primary key clustered (queue_id, started_at, claim_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.started set (lock_escalation = disable);
go

-- One row per time at which maintain checks a message for expiry, and where it is if it is ready
-- then. A producer inserts it, and so does any call that moves the message to a new position or
-- delays it again. Of two rows of a message the newer counts: expiry_id is from the sequence of
-- messages, and a producer's is the message_id. (An identity would change the caller's @@identity.)
-- maintain deletes it at its time, also if the message has ended. So the time is at most a day
-- ahead, and maintain postpones it by a day until the message expires.
if object_id(N'rowq.expiry') is null
create table rowq.expiry (
    queue_id   int not null,
    expires_at datetime2(6) not null,
    expiry_id  bigint not null,
    message_id bigint not null,
    lane       smallint null,
    seq        bigint null,
    constraint expiry_pk primary key clustered (queue_id, expires_at, expiry_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.expiry set (lock_escalation = disable);
go

-- One row per ended message of a queue with result_seconds. The transaction that ends the message
-- inserts it; maintain deletes it when it is too old, and reset that of a dead message. Writers
-- lock the row by the clustered key first; only maintain and health read the other index, alone and
-- with short locks, so no session locks the two in the opposite order.
if object_id(N'rowq.result') is null
create table rowq.result (
    queue_id    int not null,
    message_id  bigint not null,
    finished_at datetime2(6) not null,
    state       nvarchar(20) collate Latin1_General_100_BIN2 not null,
    result      nvarchar(max) collate Latin1_General_100_BIN2 null,
    last_error  nvarchar(4000) collate Latin1_General_100_BIN2 null,
    constraint result_pk primary key clustered (queue_id, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
if not exists (
    select 1
    from sys.indexes i
    where i.object_id = object_id(N'rowq.result')
      and i.name = N'result_finished_ix'
)
create nonclustered index result_finished_ix on rowq.result (queue_id, finished_at)
    with (allow_page_locks = off, statistics_norecompute = on);
go
alter table rowq.result set (lock_escalation = disable);
go

-- One row per ended attempt in a queue with history_days. The call that ends the attempt inserts
-- it; maintain deletes it when it is too old. There are no partitions: adding or dropping one locks
-- the whole table, and every call that ends messages would wait. Rows are inserted and deleted by
-- the clustered key; only get_history reads the other index, and skips locked rows.
if object_id(N'rowq.history') is null
create table rowq.history (
    queue_id    int not null,
    ended_at    datetime2(6) not null,
    message_id  bigint not null,
    claim_id    bigint not null,
    attempt     smallint not null,
    leased_at   datetime2(6) not null,
    outcome     nvarchar(20) collate Latin1_General_100_BIN2 not null,
    worker_name nvarchar(400) collate Latin1_General_100_BIN2 null,
    error       nvarchar(4000) collate Latin1_General_100_BIN2 null,
    constraint history_pk primary key clustered (queue_id, ended_at, message_id, claim_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
if not exists (
    select 1
    from sys.indexes i
    where i.object_id = object_id(N'rowq.history')
      and i.name = N'history_message_ix'
)
create nonclustered index history_message_ix on rowq.history (queue_id, message_id)
    with (allow_page_locks = off, statistics_norecompute = on);
go
alter table rowq.history set (lock_escalation = disable);
go

-- One row per schedule. create_schedule inserts it, drop_schedule deletes it. maintain enqueues its
-- message in the transaction that advances next_run_at, which is null while the schedule is paused
-- and after its last tick. schedule_key is compared: the bytes of the name and a dot. A second
-- session that creates the same schedule waits for the first and adds no row (ignore_dup_key): a
-- read with holdlock would also lock the next schedule. There are no page locks and no escalation,
-- so that maintain skips single rows. Lengths count UTF-16 units. is_running is 1 while a schedule
-- that counts from the end waits for the end of a message.
if object_id(N'rowq.schedule') is null
create table rowq.schedule (
    queue_id         int not null,
    schedule_key     varbinary(402) not null,
    schedule_name    nvarchar(200) collate Latin1_General_100_BIN2 not null,
    cron             nvarchar(200) collate Latin1_General_100_BIN2 null,
    interval_seconds float null,
    time_zone        nvarchar(128) collate Latin1_General_100_BIN2 not null,
    missed           nvarchar(20) collate Latin1_General_100_BIN2 not null,
    overlap          bit not null,
    starts_at        datetime2(6) not null,
    ends_at          datetime2(6) null,
    message_type     nvarchar(400) collate Latin1_General_100_BIN2 null,
    headers          nvarchar(max) collate Latin1_General_100_BIN2 null,
    priority         smallint not null,
    group_key        nvarchar(400) collate Latin1_General_100_BIN2 null,
    max_attempts     smallint null,
    body             nvarchar(max) collate Latin1_General_100_BIN2 null,
    body_binary      varbinary(max) null,
    is_paused        bit not null constraint schedule_is_paused_df default 0,
    next_run_at      datetime2(6) null,
    last_run_at      datetime2(6) null,
    last_message_id  bigint null,
    last_error       nvarchar(4000) collate Latin1_General_100_BIN2 null,
    counts_from      nvarchar(20) collate Latin1_General_100_BIN2 not null
        constraint schedule_counts_from_df default N'start',
    is_running       bit not null constraint schedule_is_running_df default 0,
    constraint schedule_pk primary key clustered (queue_id, schedule_key)
        with (ignore_dup_key = on, allow_page_locks = off, statistics_norecompute = on),
    constraint schedule_cron_ck check (
        cron is null and interval_seconds is not null
        or cron is not null and interval_seconds is null
    ),
    constraint schedule_missed_ck check (missed in (N'skip', N'once', N'all')),
    constraint schedule_counts_from_ck check (counts_from in (N'start', N'end'))
);
go
alter table rowq.schedule set (lock_escalation = disable);
go

-- One row per IANA time zone: the name that Windows and SQL Server use for it. The pairs are those
-- of windowsZones in the Unicode CLDR, plus current names of those listed under an older one. Other
-- names are passed to the server unchanged.
if object_id(N'rowq.time_zone') is null
create table rowq.time_zone (
    iana_name    nvarchar(128) collate Latin1_General_100_BIN2 not null,
    windows_name nvarchar(128) collate Latin1_General_100_BIN2 not null,
    constraint time_zone_pk primary key clustered (iana_name)
);
go
insert into rowq.time_zone (iana_name, windows_name)
select i.value, v.windows_name
from (
    values
        (N'AUS Central Standard Time', N'Australia/Darwin'),
        (N'AUS Eastern Standard Time', N'Australia/Sydney Australia/Melbourne Australia/Canberra'),
        (N'Afghanistan Standard Time', N'Asia/Kabul'),
        (N'Alaskan Standard Time', N'America/Anchorage America/Juneau America/Metlakatla'),
        (N'Alaskan Standard Time', N'America/Nome America/Sitka America/Yakutat US/Alaska'),
        (N'Aleutian Standard Time', N'America/Adak'),
        (N'Altai Standard Time', N'Asia/Barnaul'),
        (N'Arab Standard Time', N'Asia/Riyadh Asia/Aden Asia/Bahrain Asia/Kuwait Asia/Qatar'),
        (N'Arabian Standard Time', N'Etc/GMT-4 Asia/Dubai Asia/Muscat'),
        (N'Arabic Standard Time', N'Asia/Baghdad'),
        (N'Argentina Standard Time', N'America/Buenos_Aires America/Argentina/Buenos_Aires'),
        (N'Argentina Standard Time', N'America/Argentina/La_Rioja America/Argentina/Rio_Gallegos'),
        (N'Argentina Standard Time', N'America/Argentina/Salta America/Argentina/San_Juan'),
        (N'Argentina Standard Time', N'America/Argentina/San_Luis America/Argentina/Tucuman'),
        (N'Argentina Standard Time', N'America/Argentina/Ushuaia America/Argentina/Catamarca'),
        (N'Argentina Standard Time', N'America/Argentina/Cordoba America/Argentina/Jujuy'),
        (N'Argentina Standard Time', N'America/Argentina/Mendoza America/Catamarca'),
        (N'Argentina Standard Time', N'America/Cordoba America/Jujuy America/Mendoza'),
        (N'Astrakhan Standard Time', N'Europe/Astrakhan Europe/Ulyanovsk'),
        (N'Atlantic Standard Time', N'America/Halifax America/Glace_Bay America/Goose_Bay'),
        (N'Atlantic Standard Time', N'America/Moncton America/Thule Atlantic/Bermuda'),
        (N'Aus Central W. Standard Time', N'Australia/Eucla'),
        (N'Azerbaijan Standard Time', N'Asia/Baku'),
        (N'Azores Standard Time', N'Atlantic/Azores'),
        (N'Bahia Standard Time', N'America/Bahia'),
        (N'Bangladesh Standard Time', N'Asia/Dhaka Asia/Thimphu'),
        (N'Belarus Standard Time', N'Europe/Minsk'),
        (N'Bougainville Standard Time', N'Pacific/Bougainville'),
        (N'Canada Central Standard Time', N'America/Regina America/Swift_Current'),
        (N'Cape Verde Standard Time', N'Etc/GMT+1 Atlantic/Cape_Verde'),
        (N'Caucasus Standard Time', N'Asia/Yerevan'),
        (N'Cen. Australia Standard Time', N'Australia/Adelaide Australia/Broken_Hill'),
        (N'Central America Standard Time', N'Etc/GMT+6 America/Guatemala America/Belize'),
        (N'Central America Standard Time', N'America/Costa_Rica America/El_Salvador'),
        (N'Central America Standard Time', N'America/Managua America/Tegucigalpa'),
        (N'Central America Standard Time', N'Pacific/Galapagos'),
        (N'Central Asia Standard Time', N'Etc/GMT-6 Asia/Bishkek Asia/Urumqi Indian/Chagos'),
        (N'Central Brazilian Standard Time', N'America/Cuiaba America/Campo_Grande'),
        (N'Central Europe Standard Time', N'Europe/Budapest Europe/Prague Europe/Bratislava'),
        (N'Central Europe Standard Time', N'Europe/Ljubljana Europe/Belgrade Europe/Podgorica'),
        (N'Central Europe Standard Time', N'Europe/Tirane'),
        (N'Central European Standard Time', N'Europe/Warsaw Europe/Sarajevo Europe/Skopje'),
        (N'Central European Standard Time', N'Europe/Zagreb Poland'),
        (N'Central Pacific Standard Time', N'Etc/GMT-11 Pacific/Guadalcanal Pacific/Noumea'),
        (N'Central Pacific Standard Time', N'Pacific/Efate Pacific/Ponape Pacific/Pohnpei'),
        (N'Central Pacific Standard Time', N'Pacific/Kosrae'),
        (N'Central Standard Time', N'America/Chicago America/Winnipeg America/Rankin_Inlet'),
        (N'Central Standard Time', N'America/Resolute America/Matamoros America/Ojinaga'),
        (N'Central Standard Time', N'America/Menominee America/Indiana/Knox'),
        (N'Central Standard Time', N'America/Indiana/Tell_City America/North_Dakota/Beulah'),
        (N'Central Standard Time', N'America/North_Dakota/Center America/North_Dakota/New_Salem'),
        (N'Central Standard Time', N'US/Central'),
        (N'Central Standard Time (Mexico)', N'America/Mexico_City America/Merida'),
        (N'Central Standard Time (Mexico)', N'America/Monterrey America/Chihuahua'),
        (N'Central Standard Time (Mexico)', N'America/Bahia_Banderas'),
        (N'Chatham Islands Standard Time', N'Pacific/Chatham'),
        (N'China Standard Time', N'Asia/Shanghai Asia/Hong_Kong Asia/Macau Asia/Chongqing PRC'),
        (N'Cuba Standard Time', N'America/Havana'),
        (N'Dateline Standard Time', N'Etc/GMT+12'),
        (N'E. Africa Standard Time', N'Etc/GMT-3 Africa/Nairobi Africa/Addis_Ababa Africa/Asmera'),
        (N'E. Africa Standard Time', N'Africa/Asmara Africa/Dar_es_Salaam Africa/Djibouti'),
        (N'E. Africa Standard Time', N'Africa/Kampala Africa/Mogadishu Indian/Antananarivo'),
        (N'E. Africa Standard Time', N'Indian/Comoro Indian/Mayotte'),
        (N'E. Australia Standard Time', N'Australia/Brisbane Australia/Lindeman'),
        (N'E. Europe Standard Time', N'Europe/Chisinau'),
        (N'E. South America Standard Time', N'America/Sao_Paulo'),
        (N'Easter Island Standard Time', N'Pacific/Easter'),
        (N'Eastern Standard Time', N'America/New_York America/Toronto America/Detroit'),
        (N'Eastern Standard Time', N'America/Montreal America/Nassau America/Iqaluit'),
        (N'Eastern Standard Time', N'America/Kentucky/Louisville America/Kentucky/Monticello'),
        (N'Eastern Standard Time', N'America/Louisville America/Indiana/Petersburg'),
        (N'Eastern Standard Time', N'America/Indiana/Vincennes America/Indiana/Winamac US/Eastern'),
        (N'Eastern Standard Time (Mexico)', N'America/Cancun'),
        (N'Egypt Standard Time', N'Africa/Cairo'),
        (N'Ekaterinburg Standard Time', N'Asia/Yekaterinburg'),
        (N'FLE Standard Time', N'Europe/Kiev Europe/Kyiv Europe/Helsinki Europe/Riga Europe/Sofia'),
        (N'FLE Standard Time', N'Europe/Tallinn Europe/Vilnius Europe/Mariehamn Europe/Uzhgorod'),
        (N'FLE Standard Time', N'Europe/Zaporozhye'),
        (N'Fiji Standard Time', N'Pacific/Fiji'),
        (N'GMT Standard Time', N'Europe/London Europe/Dublin Europe/Lisbon Europe/Guernsey'),
        (N'GMT Standard Time', N'Europe/Isle_of_Man Europe/Jersey Europe/Belfast Atlantic/Canary'),
        (N'GMT Standard Time', N'Atlantic/Faeroe Atlantic/Faroe Atlantic/Madeira GB'),
        (N'GTB Standard Time', N'Europe/Bucharest Europe/Athens Asia/Nicosia Asia/Famagusta'),
        (N'GTB Standard Time', N'Europe/Nicosia'),
        (N'Georgian Standard Time', N'Asia/Tbilisi'),
        (N'Greenland Standard Time', N'America/Godthab America/Nuuk'),
        (N'Greenwich Standard Time', N'Atlantic/Reykjavik Africa/Abidjan Africa/Accra'),
        (N'Greenwich Standard Time', N'Africa/Bamako Africa/Banjul Africa/Bissau Africa/Conakry'),
        (N'Greenwich Standard Time', N'Africa/Dakar Africa/Freetown Africa/Lome Africa/Monrovia'),
        (N'Greenwich Standard Time', N'Africa/Nouakchott Africa/Ouagadougou America/Danmarkshavn'),
        (N'Greenwich Standard Time', N'Atlantic/St_Helena'),
        (N'Haiti Standard Time', N'America/Port-au-Prince'),
        (N'Hawaiian Standard Time', N'Etc/GMT+10 Pacific/Honolulu Pacific/Rarotonga'),
        (N'Hawaiian Standard Time', N'Pacific/Tahiti US/Hawaii'),
        (N'India Standard Time', N'Asia/Calcutta Asia/Kolkata'),
        (N'Iran Standard Time', N'Asia/Tehran'),
        (N'Israel Standard Time', N'Asia/Jerusalem Asia/Tel_Aviv Israel'),
        (N'Jordan Standard Time', N'Asia/Amman'),
        (N'Kaliningrad Standard Time', N'Europe/Kaliningrad'),
        (N'Korea Standard Time', N'Asia/Seoul'),
        (N'Libya Standard Time', N'Africa/Tripoli'),
        (N'Line Islands Standard Time', N'Etc/GMT-14 Pacific/Kiritimati'),
        (N'Lord Howe Standard Time', N'Australia/Lord_Howe'),
        (N'Magadan Standard Time', N'Asia/Magadan'),
        (N'Magallanes Standard Time', N'America/Punta_Arenas America/Coyhaique'),
        (N'Marquesas Standard Time', N'Pacific/Marquesas'),
        (N'Mauritius Standard Time', N'Indian/Mauritius Indian/Mahe Indian/Reunion'),
        (N'Middle East Standard Time', N'Asia/Beirut'),
        (N'Montevideo Standard Time', N'America/Montevideo'),
        (N'Morocco Standard Time', N'Africa/Casablanca Africa/El_Aaiun'),
        (N'Mountain Standard Time', N'America/Denver America/Boise America/Edmonton'),
        (N'Mountain Standard Time', N'America/Cambridge_Bay America/Inuvik America/Ciudad_Juarez'),
        (N'Mountain Standard Time', N'US/Mountain'),
        (N'Mountain Standard Time (Mexico)', N'America/Mazatlan'),
        (N'Myanmar Standard Time', N'Asia/Rangoon Asia/Yangon Indian/Cocos'),
        (N'N. Central Asia Standard Time', N'Asia/Novosibirsk'),
        (N'Namibia Standard Time', N'Africa/Windhoek'),
        (N'Nepal Standard Time', N'Asia/Katmandu Asia/Kathmandu'),
        (N'New Zealand Standard Time', N'Pacific/Auckland Antarctica/McMurdo NZ'),
        (N'Newfoundland Standard Time', N'America/St_Johns'),
        (N'Norfolk Standard Time', N'Pacific/Norfolk'),
        (N'North Asia East Standard Time', N'Asia/Irkutsk'),
        (N'North Asia Standard Time', N'Asia/Krasnoyarsk Asia/Novokuznetsk'),
        (N'North Korea Standard Time', N'Asia/Pyongyang'),
        (N'Omsk Standard Time', N'Asia/Omsk'),
        (N'Pacific SA Standard Time', N'America/Santiago'),
        (N'Pacific Standard Time', N'America/Los_Angeles America/Vancouver US/Pacific'),
        (N'Pacific Standard Time (Mexico)', N'America/Tijuana'),
        (N'Pakistan Standard Time', N'Asia/Karachi'),
        (N'Paraguay Standard Time', N'America/Asuncion'),
        (N'Qyzylorda Standard Time', N'Asia/Qyzylorda'),
        (N'Romance Standard Time', N'Europe/Paris Europe/Brussels Europe/Copenhagen Europe/Madrid'),
        (N'Romance Standard Time', N'Africa/Ceuta'),
        (N'Russia Time Zone 10', N'Asia/Srednekolymsk'),
        (N'Russia Time Zone 11', N'Asia/Kamchatka Asia/Anadyr'),
        (N'Russia Time Zone 3', N'Europe/Samara'),
        (N'Russian Standard Time', N'Europe/Moscow Europe/Kirov Europe/Simferopol'),
        (N'SA Eastern Standard Time', N'Etc/GMT+3 America/Cayenne America/Fortaleza'),
        (N'SA Eastern Standard Time', N'America/Recife America/Belem America/Maceio'),
        (N'SA Eastern Standard Time', N'America/Santarem America/Paramaribo Atlantic/Stanley'),
        (N'SA Pacific Standard Time', N'Etc/GMT+5 America/Bogota America/Lima America/Panama'),
        (N'SA Pacific Standard Time', N'America/Jamaica America/Guayaquil America/Cayman'),
        (N'SA Pacific Standard Time', N'America/Rio_Branco America/Eirunepe America/Coral_Harbour'),
        (N'SA Pacific Standard Time', N'America/Atikokan'),
        (N'SA Western Standard Time', N'Etc/GMT+4 America/La_Paz America/Puerto_Rico'),
        (N'SA Western Standard Time', N'America/Manaus America/Boa_Vista America/Porto_Velho'),
        (N'SA Western Standard Time', N'America/Santo_Domingo America/Barbados America/Martinique'),
        (N'SA Western Standard Time', N'America/Guadeloupe America/Curacao America/Aruba'),
        (N'SA Western Standard Time', N'America/Antigua America/Anguilla America/Blanc-Sablon'),
        (N'SA Western Standard Time', N'America/Dominica America/Grenada America/Guyana'),
        (N'SA Western Standard Time', N'America/Kralendijk America/Lower_Princes America/Marigot'),
        (N'SA Western Standard Time', N'America/Montserrat America/Port_of_Spain'),
        (N'SA Western Standard Time', N'America/St_Barthelemy America/St_Kitts America/St_Lucia'),
        (N'SA Western Standard Time', N'America/St_Thomas America/St_Vincent America/Tortola'),
        (N'SE Asia Standard Time', N'Etc/GMT-7 Asia/Bangkok Asia/Jakarta Asia/Saigon'),
        (N'SE Asia Standard Time', N'Asia/Ho_Chi_Minh Asia/Phnom_Penh Asia/Vientiane'),
        (N'SE Asia Standard Time', N'Asia/Pontianak Indian/Christmas'),
        (N'Saint Pierre Standard Time', N'America/Miquelon'),
        (N'Sakhalin Standard Time', N'Asia/Sakhalin'),
        (N'Samoa Standard Time', N'Pacific/Apia'),
        (N'Sao Tome Standard Time', N'Africa/Sao_Tome'),
        (N'Saratov Standard Time', N'Europe/Saratov'),
        (N'Singapore Standard Time', N'Etc/GMT-8 Asia/Singapore Asia/Kuala_Lumpur Asia/Manila'),
        (N'Singapore Standard Time', N'Asia/Brunei Asia/Kuching Asia/Makassar Singapore'),
        (N'South Africa Standard Time', N'Etc/GMT-2 Africa/Johannesburg Africa/Blantyre'),
        (N'South Africa Standard Time', N'Africa/Bujumbura Africa/Gaborone Africa/Harare'),
        (N'South Africa Standard Time', N'Africa/Kigali Africa/Lubumbashi Africa/Lusaka'),
        (N'South Africa Standard Time', N'Africa/Maputo Africa/Maseru Africa/Mbabane'),
        (N'South Sudan Standard Time', N'Africa/Juba'),
        (N'Sri Lanka Standard Time', N'Asia/Colombo'),
        (N'Sudan Standard Time', N'Africa/Khartoum'),
        (N'Syria Standard Time', N'Asia/Damascus'),
        (N'Taipei Standard Time', N'Asia/Taipei'),
        (N'Tasmania Standard Time', N'Australia/Hobart Australia/Currie'),
        (N'Tocantins Standard Time', N'America/Araguaina'),
        (N'Tokyo Standard Time', N'Etc/GMT-9 Asia/Tokyo Asia/Jayapura Asia/Dili Pacific/Palau'),
        (N'Tokyo Standard Time', N'Japan'),
        (N'Tomsk Standard Time', N'Asia/Tomsk'),
        (N'Tonga Standard Time', N'Pacific/Tongatapu'),
        (N'Transbaikal Standard Time', N'Asia/Chita'),
        (N'Turkey Standard Time', N'Europe/Istanbul Asia/Istanbul Turkey'),
        (N'Turks And Caicos Standard Time', N'America/Grand_Turk'),
        (N'US Eastern Standard Time', N'America/Indianapolis America/Indiana/Indianapolis'),
        (N'US Eastern Standard Time', N'America/Indiana/Marengo America/Indiana/Vevay'),
        (N'US Mountain Standard Time', N'Etc/GMT+7 America/Phoenix America/Creston'),
        (N'US Mountain Standard Time', N'America/Dawson_Creek America/Fort_Nelson'),
        (N'US Mountain Standard Time', N'America/Hermosillo US/Arizona'),
        (N'UTC', N'Etc/UTC Etc/GMT Etc/UCT Etc/Zulu Etc/Universal GMT UCT Zulu Universal'),
        (N'UTC+12', N'Etc/GMT-12 Pacific/Tarawa Pacific/Funafuti Pacific/Kwajalein Pacific/Majuro'),
        (N'UTC+12', N'Pacific/Nauru Pacific/Wake Pacific/Wallis'),
        (N'UTC+13', N'Etc/GMT-13 Pacific/Enderbury Pacific/Kanton Pacific/Fakaofo'),
        (N'UTC-02', N'Etc/GMT+2 America/Noronha Atlantic/South_Georgia'),
        (N'UTC-08', N'Etc/GMT+8 Pacific/Pitcairn'),
        (N'UTC-09', N'Etc/GMT+9 Pacific/Gambier'),
        (N'UTC-11', N'Etc/GMT+11 Pacific/Pago_Pago Pacific/Niue Pacific/Midway'),
        (N'Ulaanbaatar Standard Time', N'Asia/Ulaanbaatar Asia/Choibalsan'),
        (N'Venezuela Standard Time', N'America/Caracas'),
        (N'Vladivostok Standard Time', N'Asia/Vladivostok Asia/Ust-Nera'),
        (N'Volgograd Standard Time', N'Europe/Volgograd'),
        (N'W. Australia Standard Time', N'Australia/Perth'),
        (N'W. Central Africa Standard Time', N'Etc/GMT-1 Africa/Lagos Africa/Algiers'),
        (N'W. Central Africa Standard Time', N'Africa/Bangui Africa/Brazzaville Africa/Douala'),
        (N'W. Central Africa Standard Time', N'Africa/Kinshasa Africa/Libreville Africa/Luanda'),
        (N'W. Central Africa Standard Time', N'Africa/Malabo Africa/Ndjamena Africa/Niamey'),
        (N'W. Central Africa Standard Time', N'Africa/Porto-Novo Africa/Tunis'),
        (N'W. Europe Standard Time', N'Europe/Berlin Europe/Amsterdam Europe/Vienna Europe/Zurich'),
        (N'W. Europe Standard Time', N'Europe/Rome Europe/Stockholm Europe/Oslo Europe/Luxembourg'),
        (N'W. Europe Standard Time', N'Europe/Monaco Europe/Malta Europe/Andorra Europe/Busingen'),
        (N'W. Europe Standard Time', N'Europe/Gibraltar Europe/San_Marino Europe/Vaduz'),
        (N'W. Europe Standard Time', N'Europe/Vatican Arctic/Longyearbyen'),
        (N'W. Mongolia Standard Time', N'Asia/Hovd'),
        (N'West Asia Standard Time', N'Etc/GMT-5 Asia/Tashkent Asia/Ashgabat Asia/Dushanbe'),
        (N'West Asia Standard Time', N'Asia/Samarkand Asia/Aqtau Asia/Aqtobe Asia/Atyrau'),
        (N'West Asia Standard Time', N'Asia/Oral Asia/Almaty Asia/Qostanay Indian/Kerguelen'),
        (N'West Asia Standard Time', N'Indian/Maldives'),
        (N'West Bank Standard Time', N'Asia/Hebron Asia/Gaza'),
        (N'West Pacific Standard Time', N'Etc/GMT-10 Pacific/Port_Moresby Pacific/Guam'),
        (N'West Pacific Standard Time', N'Pacific/Saipan Pacific/Truk Pacific/Chuuk'),
        (N'Yakutsk Standard Time', N'Asia/Yakutsk Asia/Khandyga'),
        (N'Yukon Standard Time', N'America/Whitehorse America/Dawson')
) v (windows_name, iana_names)
cross apply string_split(v.iana_names, N' ') i
where not exists (
    select 1
    from rowq.time_zone t
    where t.iana_name = i.value collate Latin1_General_100_BIN2
);
go

-- One row per topic pattern of a queue. bind_topic inserts it and unbind_topic deletes it, both
-- with the row of queue_lock shared; producers keep no lock on it. A second session that binds the
-- same pattern waits for the first and adds no row (ignore_dup_key). If a pattern has no "*", a
-- topic that begins with literal_prefix matches. shape has a digit per word of the pattern: 1 for
-- "*", 2 for "#", 0 for any other. Each read uses one index only, so that no session locks two in
-- the opposite order.
if object_id(N'rowq.topic_binding') is null
create table rowq.topic_binding (
    queue_id       int not null,
    topic_pattern  nvarchar(200) collate Latin1_General_100_BIN2 not null,
    word_count     smallint not null,
    matches_rest   bit not null,
    literal_prefix nvarchar(200) collate Latin1_General_100_BIN2 not null,
    like_pattern   nvarchar(400) collate Latin1_General_100_BIN2 null,
    shape          varchar(100) collate Latin1_General_100_BIN2 not null,
    constraint topic_binding_pk primary key clustered (queue_id, topic_pattern)
        with (ignore_dup_key = on, allow_page_locks = off)
);
go
alter table rowq.topic_binding set (lock_escalation = disable);
go
if indexproperty(object_id(N'rowq.topic_binding'), N'topic_binding_prefix_ix', N'IndexID') is null
create nonclustered index topic_binding_prefix_ix
    on rowq.topic_binding (literal_prefix, queue_id, topic_pattern)
    include (word_count, matches_rest, like_pattern, shape)
    with (allow_page_locks = off);
go
if indexproperty(object_id(N'rowq.topic_binding'), N'topic_binding_pattern_ix', N'IndexID') is null
create nonclustered index topic_binding_pattern_ix
    on rowq.topic_binding (topic_pattern, queue_id)
    with (allow_page_locks = off);
go

-- One row per worker process. report_worker inserts, updates and deletes it, and deletes those of
-- killed workers after an hour. The rates are those between the last two reports. worker_id has no
-- blanks, so that equal texts have equal bytes.
if object_id(N'rowq.worker') is null
create table rowq.worker (
    queue_id             int not null,
    worker_id            nvarchar(64) collate Latin1_General_100_BIN2 not null,
    worker_name          nvarchar(400) collate Latin1_General_100_BIN2 null,
    host_name            nvarchar(400) collate Latin1_General_100_BIN2 null,
    worker_version       nvarchar(400) collate Latin1_General_100_BIN2 null,
    threads              int not null,
    started_at           datetime2(6) not null,
    last_seen_at         datetime2(6) not null,
    completed            bigint not null,
    failed               bigint not null,
    completed_per_second float not null constraint worker_completed_per_second_df default 0,
    failed_per_second    float not null constraint worker_failed_per_second_df default 0,
    constraint worker_pk primary key clustered (queue_id, worker_id)
        with (ignore_dup_key = on, allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.worker set (lock_escalation = disable);
go

-- One row per ended message of a queue with archive_days. The finishing routines insert it;
-- maintain moves it to archived, oldest first.
if object_id(N'rowq.finished') is null
create table rowq.finished (
    queue_id    int not null,
    finished_at datetime2(6) not null,
    message_id  bigint not null,
    lane        smallint not null,
    attempt     smallint not null,
    state       nvarchar(20) collate Latin1_General_100_BIN2 not null,
    constraint finished_pk primary key clustered (queue_id, finished_at, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.finished set (lock_escalation = disable);
go

if not exists (select 1 from sys.partition_functions f where f.name = N'rowq_day')
create partition function rowq_day (datetime2(6)) as range right for values ();
go
if not exists (select 1 from sys.partition_schemes s where s.name = N'rowq_day')
create partition scheme rowq_day as partition rowq_day all to ([PRIMARY]);
go
-- One row per archived message. maintain inserts it. There is one partition per day (UTC), which is
-- truncated when no queue needs it. The partition function begins without a day: maintain splits
-- days off one partition before they have rows. Both indexes are partitioned, as truncating a
-- partition requires.
if object_id(N'rowq.archived') is null
create table rowq.archived (
    queue_id      int not null,
    finished_at   datetime2(6) not null,
    message_id    bigint not null,
    lane          smallint not null,
    attempt       smallint not null,
    enqueued_at   datetime2(6) not null,
    state         nvarchar(20) collate Latin1_General_100_BIN2 not null,
    message_type  nvarchar(400) collate Latin1_General_100_BIN2 null,
    dedup_key     nvarchar(400) collate Latin1_General_100_BIN2 null,
    headers       nvarchar(max) collate Latin1_General_100_BIN2 null,
    body          nvarchar(max) collate Latin1_General_100_BIN2 null,
    body_binary   varbinary(max) null,
    group_key     nvarchar(400) collate Latin1_General_100_BIN2 null,
    producer_name nvarchar(400) collate Latin1_General_100_BIN2 null,
    constraint archived_pk primary key clustered (queue_id, finished_at, message_id)
        with (ignore_dup_key = on, data_compression = page) on rowq_day (finished_at)
) on rowq_day (finished_at);
go
if not exists (
    select 1
    from sys.indexes i
    where i.object_id = object_id(N'rowq.archived')
      and i.name = N'archived_message_ix'
)
create nonclustered index archived_message_ix on rowq.archived (queue_id, message_id)
    with (data_compression = page) on rowq_day (finished_at);
go
alter table rowq.archived set (lock_escalation = auto);
go

-- All producers or consumers of a queue insert at the same place. SQL Server 2019 and newer reduce
-- that contention (optimize_for_sequential_key); older servers do not have the option.
declare @statement nvarchar(max);
if cast(serverproperty('EngineEdition') as int) in (5, 8)
    or cast(serverproperty('ProductMajorVersion') as int) >= 15
    select @statement = string_agg(
        cast(concat(
            N'alter index ', quotename(i.name), N' on rowq.',
            quotename(object_name(i.object_id)),
            N' set (optimize_for_sequential_key = on);'
        ) as nvarchar(max)),
        N' '
    )
    from sys.indexes i
    where i.object_id in (
              object_id(N'rowq.message'), object_id(N'rowq.ready'), object_id(N'rowq.claim'),
              object_id(N'rowq.leased')
          )
      and i.index_id = 1;
if @statement is not null
    exec sys.sp_executesql @statement;
go
