-- Tables of rowq on PostgreSQL, in the order of installation.
--
-- queue holds the settings, message the bodies. A message waits in ready, delayed, group_waiting or
-- blocked, is leased in claim, and ends in finished and archive or in dead. The other tables belong
-- to features: a queue that does not use one has no rows there. queue_id is the first column of
-- every key, and drop_queue deletes a queue's rows everywhere. Hot tables have only a primary key,
-- the order in which they are read, and autovacuum by number of rows.
--
-- Each statement can run again. Each table is a unit: an upgrade installs the units that changed.

-- Check first: "create schema if not exists" requires the right to create schemas even if there is
-- nothing to do.
do $$
begin
    if to_regnamespace('rowq') is null then
        create schema rowq;
        comment on schema rowq is 'rowq message queue';
    end if;
end;
$$;

-- Numbers messages and their positions in a lane. It has cache 1, because the floor of a lane
-- relies on numbers being assigned in order (internal/floors.sql).
create sequence if not exists rowq.message_seq as bigint cache 1;

-- Numbers claims and finished batches. It starts at the microseconds since 1970, so that two
-- servers never give out the same claim: an old worker's claim is unknown on a newer server.
create sequence if not exists rowq.claim_seq as bigint cache 1;
do $$
begin
    perform setval('rowq.claim_seq', (extract(epoch from clock_timestamp()) * 1000000)::bigint)
    from rowq.claim_seq s
    where s.last_value = 1;
end;
$$;

-- One row per fact about the installation. Migrations write schema_version and rowq_version.
-- channel is the prefix of notification channels. maintain writes its last error for a queue to
-- maintain_fault.<queue_id>, and deletes it when it succeeds.
create table if not exists rowq.meta (
    name       text not null,
    value      text not null,
    changed_at timestamp with time zone not null default clock_timestamp(),
    constraint meta_pk primary key (name)
);

-- Every account can listen to or notify a channel that it can name, so names begin with a random
-- text.
insert into rowq.meta (name, value)
values ('channel', 'rowq_' || replace(gen_random_uuid()::text, '-', ''))
on conflict (name) do nothing;

-- One row per queue: its settings. create_queue inserts it, alter_queue, pause_queue and
-- resume_queue change it, drop_queue deletes it, and maintain sets has_deferred. A queue_id is
-- never reused.
create table if not exists rowq.queue (
    queue_id             integer generated always as identity,
    queue_name           text not null,
    lease_seconds        integer not null default 30,
    max_attempts         smallint not null default 10,
    backoff_base_seconds double precision not null default 5,
    backoff_factor       double precision not null default 2,
    backoff_cap_seconds  double precision not null default 3600,
    backoff_jitter       double precision not null default 0.2,
    archive_days         integer not null default 0,
    max_body_length      integer not null default 1048576,
    group_limit          smallint not null default 1,
    group_after_dead     text not null default 'continue',
    group_pause_seconds  double precision not null default 0,
    has_deferred         boolean not null default false,
    max_leased           integer not null default 0,
    rate_limit           integer not null default 0,
    rate_seconds         double precision not null default 1,
    result_seconds       double precision not null default 0,
    history_days         integer not null default 0,
    paused_at            timestamp with time zone,
    created_at           timestamp with time zone not null default clock_timestamp(),
    constraint queue_pk primary key (queue_id),
    constraint queue_name_uq unique (queue_name),
    constraint queue_name_ck check (
        char_length(queue_name) between 1 and 100
        and queue_name !~ '[[:cntrl:]]'
    ),
    constraint queue_lease_seconds_ck check (lease_seconds between 1 and 86400),
    constraint queue_max_attempts_ck check (max_attempts between 0 and 10000),
    constraint queue_backoff_base_seconds_ck check (backoff_base_seconds between 0 and 86400),
    constraint queue_backoff_factor_ck check (backoff_factor between 1 and 10),
    constraint queue_backoff_cap_seconds_ck check (backoff_cap_seconds between 0 and 31536000),
    constraint queue_backoff_jitter_ck check (backoff_jitter between 0 and 1),
    constraint queue_archive_days_ck check (archive_days between 0 and 36500),
    constraint queue_max_body_length_ck check (max_body_length between 1 and 33554432),
    constraint queue_group_limit_ck check (group_limit between 1 and 100),
    constraint queue_group_after_dead_ck check (group_after_dead in ('continue', 'hold')),
    constraint queue_group_pause_seconds_ck check (group_pause_seconds between 0 and 86400),
    constraint queue_max_leased_ck check (max_leased between 0 and 100000),
    constraint queue_rate_limit_ck check (rate_limit between 0 and 100000),
    constraint queue_rate_seconds_ck check (rate_seconds between 0.1 and 86400),
    constraint queue_result_seconds_ck check (result_seconds between 0 and 31536000),
    constraint queue_history_days_ck check (history_days between 0 and 36500)
);

-- Pages of queue_stats order names as bytes. The column keeps the default collation: another one
-- passes from the name to all texts of a call, whose comparisons then fail or use no index.
create index if not exists queue_name_ix on rowq.queue (queue_name collate "C");

-- One row per message. enqueue, publish or a schedule inserts it, and the transaction that ends the
-- message deletes it (archive, if the queue has archive_days). The first message that waits for it
-- sets has_successors; nothing else changes.
create table if not exists rowq.message (
    queue_id       integer not null,
    max_attempts   smallint,
    message_id     bigint not null default nextval('rowq.message_seq'),
    enqueued_at    timestamp with time zone not null default clock_timestamp(),
    message_type   text,
    dedup_key      text,
    group_key      text,
    headers        jsonb,
    body           text,
    body_binary    bytea,
    has_successors boolean,
    expires_at     timestamp with time zone,
    producer_name  text,
    constraint message_pk primary key (queue_id, message_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off,
    toast.autovacuum_vacuum_scale_factor = 0,
    toast.autovacuum_vacuum_threshold = 5000,
    toast.autovacuum_vacuum_cost_delay = 0,
    toast.vacuum_truncate = off
);

-- One row per message that a worker can lease. enqueue, promote, reap, release, reset and the calls
-- that resume a message insert it; dequeue deletes it, or cancel, purge_queue or an expiry. The
-- primary key is the dequeue order, and there is no second index. lane is priority * 2, plus 1 for
-- the tail: a released or reaped message goes to the front lane, so seq only grows within a lane.
create table if not exists rowq.ready (
    queue_id   integer not null,
    lane       smallint not null,
    attempt    smallint not null default 0,
    seq        bigint not null default nextval('rowq.message_seq'),
    message_id bigint not null,
    last_error text,
    constraint ready_pk primary key (queue_id, lane, seq)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- One row per message that is not due yet, so that dequeue does not read it. enqueue and
-- retry_later insert it; promote deletes it, or cancel, purge_queue or an expiry. group_key is set
-- if the message joins its group when it is due; a retried message has its slot already.
create table if not exists rowq.delayed (
    queue_id   integer not null,
    lane       smallint not null,
    attempt    smallint not null default 0,
    message_id bigint not null,
    due_at     timestamp with time zone not null,
    last_error text,
    group_key  text,
    constraint delayed_pk primary key (queue_id, message_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

create index if not exists delayed_due_ix on rowq.delayed (queue_id, due_at, message_id);

-- One row per slot: the right of one message of a group to be ready, leased or delayed for a retry.
-- A producer inserts it; the transaction that ends a message of the group passes it to the next one
-- or deletes it. It does not name its message, and is never updated. A producer that joins the
-- group locks all slots of the group, so that none is deleted while its message is uncommitted.
create table if not exists rowq.group_slot (
    queue_id  integer not null,
    slot_no   smallint not null,
    group_key text not null,
    constraint group_slot_pk primary key (queue_id, group_key, slot_no)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);

-- One row per message that waits for a slot of its group, so that dequeue does not read it. The end
-- of another message of the group deletes it, or cancel, purge_queue or an expiry.
create table if not exists rowq.group_waiting (
    queue_id   integer not null,
    lane       smallint not null,
    message_id bigint not null,
    group_key  text not null,
    last_error text,
    constraint group_waiting_pk primary key (queue_id, group_key, message_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- One row per message with unfinished predecessors, so that dequeue does not read it. It waits for
-- one at a time, the newest unfinished (predecessor_id, with a row in successor); remaining_ids are
-- the others, in order. The transaction that ends the last predecessor deletes it.
create table if not exists rowq.blocked (
    queue_id       integer not null,
    lane           smallint not null,
    message_id     bigint not null,
    predecessor_id bigint,
    due_at         timestamp with time zone,
    on_dead        text,
    group_key      text,
    remaining_ids  bigint[],
    constraint blocked_pk primary key (queue_id, message_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- One row per blocked message: message_id waits for predecessor_id. The transaction that ends the
-- predecessor deletes it.
create table if not exists rowq.successor (
    queue_id       integer not null,
    predecessor_id bigint not null,
    message_id     bigint not null,
    constraint successor_pk primary key (queue_id, predecessor_id, message_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- One row per deferred action. A call inserts it if another transaction holds what it needs, or if
-- there is too much to do; maintain runs and deletes it when due, as does a dequeue that finds
-- nothing.
-- - group_key: a slot that could not be passed on, or whose group pauses. With is_hint there may be
--   no slot yet: group_limit was raised.
-- - message_id: a blocked message that may have no unfinished predecessor.
-- - predecessor_id: an ended message whose successors are not all resumed. With is_hint it is dead.
-- - message_id = predecessor_id: an ended message whose row another transaction had locked.
create table if not exists rowq.deferred (
    queue_id       integer not null,
    is_hint        boolean not null default false,
    due_at         timestamp with time zone not null,
    deferred_id    bigint not null default nextval('rowq.claim_seq'),
    message_id     bigint,
    predecessor_id bigint,
    group_key      text,
    constraint deferred_pk primary key (queue_id, due_at, deferred_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0
);

-- One row per claim: the messages of one dequeue as parallel arrays under one lease. dequeue
-- inserts it, extend_lease updates lease_until in place (no index, fillfactor), and the finishing
-- routines and reap shrink or delete it. errors is null if no message of the batch has failed
-- before, cancel_ids if none was cancelled while leased.
create table if not exists rowq.claim (
    queue_id    integer not null,
    claim_id    bigint not null default nextval('rowq.claim_seq'),
    lease_until timestamp with time zone not null,
    message_ids bigint[] not null,
    lanes       smallint[] not null,
    attempts    smallint[] not null,
    errors      text[],
    worker_name text,
    cancel_ids  bigint[],
    progress    text,
    leased_at   timestamp with time zone not null default clock_timestamp(),
    constraint claim_pk primary key (queue_id, claim_id)
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- One row per dead message. fail_now, retry_later, reap or a dead predecessor inserts it; reset,
-- discard_dead, cancel or purge_queue deletes it. holds_slot is true if the message keeps its group
-- slot, else null.
create table if not exists rowq.dead (
    queue_id   integer not null,
    lane       smallint not null,
    attempt    smallint not null,
    message_id bigint not null,
    died_at    timestamp with time zone not null,
    last_error text,
    holds_slot boolean,
    constraint dead_pk primary key (queue_id, message_id)
);

-- One row per dedup key of an unfinished message. enqueue or reset inserts it; the transaction that
-- ends the message or makes it dead deletes it.
create table if not exists rowq.dedup (
    queue_id   integer not null,
    message_id bigint not null,
    dedup_key  text not null,
    constraint dedup_pk primary key (queue_id, dedup_key)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);

-- One row per time at which maintain checks a message for expiry, and where it is if it is ready
-- then. A producer inserts it, and so does any call that moves the message to ready under a new
-- number. maintain deletes it at its time, also if the message has ended. So the time is at most a
-- day ahead, and maintain postpones it by a day until the message expires.
create table if not exists rowq.expiry (
    queue_id   integer not null,
    lane       smallint,
    expires_at timestamp with time zone not null,
    expiry_id  bigint not null default nextval('rowq.claim_seq'),
    message_id bigint not null,
    seq        bigint,
    constraint expiry_pk primary key (queue_id, expires_at, expiry_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- One row per batch of ended messages of a queue with archive_days. The finishing routines insert
-- it; maintain moves the messages to archive and deletes it.
create table if not exists rowq.finished (
    queue_id    integer not null,
    finish_id   bigint not null default nextval('rowq.claim_seq'),
    finished_at timestamp with time zone not null,
    message_ids bigint[] not null,
    lanes       smallint[] not null,
    attempts    smallint[] not null,
    state       text not null,
    constraint finished_pk primary key (queue_id, finish_id),
    constraint finished_state_ck check (state in ('completed', 'cancelled', 'expired'))
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- One row per archived message. maintain inserts it. There is one partition per day
-- (archive_YYYYMMDD, UTC), which is dropped when no queue needs it.
create table if not exists rowq.archive (
    queue_id      integer not null,
    lane          smallint not null,
    attempt       smallint not null,
    message_id    bigint not null,
    enqueued_at   timestamp with time zone not null,
    finished_at   timestamp with time zone not null,
    state         text not null,
    message_type  text,
    dedup_key     text,
    headers       jsonb,
    body          text,
    body_binary   bytea,
    group_key     text,
    producer_name text,
    constraint archive_pk primary key (queue_id, finished_at, message_id)
) partition by range (finished_at);

create index if not exists archive_message_ix on rowq.archive (queue_id, message_id);

-- One row per generation of a lane's floor: where its live rows begin, so that no reader scans the
-- dead rows below. Rows are inserted and deleted, never updated. generation counts down, so that
-- the newest row of a lane comes first in the key; producers write positive ones for a lane that
-- was never maintained. Lanes below 0 are other tables, only for queues that have rows there: -1
-- claim (claim_id), -2 delayed (due_at), -3 finished (finish_id), -4 deferred (due_at), -5 started
-- (started_at), -6 expiry (expires_at), -7 result (finished_at), -8 history (ended_at); times in
-- microseconds.
create table if not exists rowq.floor (
    queue_id    integer not null,
    lane        smallint not null,
    generation  bigint not null,
    start_seq   bigint not null,
    safe_seq    bigint not null,
    pending_seq bigint not null,
    pending_xid xid8 not null,
    rescan_at   timestamp with time zone not null,
    sweep_at    timestamp with time zone not null,
    constraint floor_pk primary key (queue_id, lane, generation)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0
);

-- One row per schedule. create_schedule inserts it, drop_schedule deletes it. maintain enqueues its
-- message in the transaction that advances next_run_at, which is null while the schedule is paused
-- and after its last tick. is_running is true while a schedule that counts from the end waits for
-- the end of a message.
create table if not exists rowq.schedule (
    queue_id         integer not null,
    schedule_name    text not null,
    cron             text,
    interval_seconds double precision,
    time_zone        text not null,
    missed           text not null,
    overlap          boolean not null,
    starts_at        timestamp with time zone not null,
    ends_at          timestamp with time zone,
    message_type     text,
    headers          jsonb,
    priority         smallint not null,
    group_key        text,
    max_attempts     smallint,
    body             text,
    body_binary      bytea,
    is_paused        boolean not null default false,
    next_run_at      timestamp with time zone,
    last_run_at      timestamp with time zone,
    last_message_id  bigint,
    last_error       text,
    counts_from      text not null default 'start',
    is_running       boolean not null default false,
    constraint schedule_pk primary key (queue_id, schedule_name),
    constraint schedule_cron_ck check ((cron is null) <> (interval_seconds is null)),
    constraint schedule_missed_ck check (missed in ('skip', 'once', 'all')),
    constraint schedule_counts_from_ck check (counts_from in ('start', 'end'))
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- maintain reads the due schedules of a queue only, in the order of their ticks.
create index if not exists schedule_due_ix on rowq.schedule (queue_id, next_run_at)
where next_run_at is not null;

-- One row per queue. A dequeue from a limited queue locks it before counting; enqueue reads it
-- instead of queue. create_queue inserts it, and it is never updated, so there are no dead rows.
create table if not exists rowq.limit_lock (
    queue_id integer not null,
    constraint limit_lock_pk primary key (queue_id)
);

-- One row per dequeue from a queue with a rate_limit: when it started how many deliveries. maintain
-- deletes it once it is older than rate_seconds.
create table if not exists rowq.started (
    queue_id   integer not null,
    messages   integer not null,
    started_at timestamp with time zone not null,
    claim_id   bigint not null,
    constraint started_pk primary key (queue_id, started_at, claim_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- One row per ended message of a queue with result_seconds. The transaction that ends the message
-- inserts it; maintain deletes it when it is too old, and reset that of a dead message.
create table if not exists rowq.result (
    queue_id    integer not null,
    message_id  bigint not null,
    finished_at timestamp with time zone not null,
    state       text not null,
    result      jsonb,
    last_error  text,
    constraint result_pk primary key (queue_id, message_id),
    constraint result_state_ck check (state in ('completed', 'cancelled', 'expired', 'dead'))
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

create index if not exists result_finished_ix on rowq.result (queue_id, finished_at);

-- One row per ended attempt in a queue with history_days. The call that ends the attempt inserts
-- it; maintain deletes it when it is too old. There are no partitions: dropping one locks the whole
-- table, and every call that ends messages would wait.
create table if not exists rowq.history (
    queue_id    integer not null,
    attempt     smallint not null,
    message_id  bigint not null,
    claim_id    bigint not null,
    leased_at   timestamp with time zone not null,
    ended_at    timestamp with time zone not null,
    outcome     text not null,
    worker_name text,
    error       text,
    constraint history_pk primary key (queue_id, ended_at, message_id, claim_id),
    constraint history_outcome_ck check (
        outcome in (
            'completed', 'retrying', 'dead', 'released', 'snoozed', 'lease_expired', 'cancelled'
        )
    )
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

create index if not exists history_message_ix on rowq.history (queue_id, message_id);

-- One row per topic pattern of a queue. bind_topic inserts it, unbind_topic deletes it, and
-- producers lock none. If a pattern has no "*", a topic that begins with literal_prefix matches.
-- shape has a digit per word of the pattern: 1 for "*", 2 for "#", 0 for any other.
create table if not exists rowq.topic_binding (
    queue_id       integer not null,
    word_count     smallint not null,
    matches_rest   boolean not null,
    topic_pattern  text not null,
    literal_prefix text not null,
    like_pattern   text,
    shape          text not null,
    constraint topic_binding_pk primary key (queue_id, topic_pattern)
);

create index if not exists topic_binding_prefix_ix on rowq.topic_binding (literal_prefix);

create index if not exists topic_binding_pattern_ix on rowq.topic_binding (topic_pattern);

-- One row per worker process. report_worker inserts, updates and deletes it, and deletes those of
-- killed workers after an hour. The rates are those between the last two reports.
create table if not exists rowq.worker (
    queue_id             integer not null,
    threads              integer not null,
    started_at           timestamp with time zone not null,
    last_seen_at         timestamp with time zone not null,
    completed            bigint not null,
    failed               bigint not null,
    completed_per_second double precision not null default 0,
    failed_per_second    double precision not null default 0,
    worker_id            text not null,
    worker_name          text,
    host_name            text,
    worker_version       text,
    constraint worker_pk primary key (queue_id, worker_id)
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0
);
