-- Tables of rowq on PostgreSQL, in the order of installation.
--
-- queue has the settings; message has what producers handed in. A message waits in one of ready,
-- delayed, group_waiting or blocked, is leased in claim, and ends in finished and archive or in
-- dead. The rest belongs to features: a queue that does not use one has no rows there. The queue's
-- number stands first in the key of every table. Hot tables have a primary key, which is the order
-- in which they are read, and autovacuum by number of rows.
--
-- Each statement may run again. Each table is a unit: an upgrade brings the tables that changed,
-- and its migration says how.

-- Look first, because "create schema if not exists" asks for the right to create schemas even where
-- there is nothing to do.
do $$
begin
    if to_regnamespace('rowq') is null then
        create schema rowq;
        comment on schema rowq is 'rowq message queue';
    end if;
end;
$$;

-- This sequence numbers a message and its place in a lane. It has cache 1, because the floor of a
-- lane relies on numbers being given out in order (internal/floors.sql).
create sequence if not exists rowq.message_seq as bigint cache 1;

-- This sequence numbers claims and finished batches.
create sequence if not exists rowq.claim_seq as bigint cache 1;

-- The rows say what is installed: schema_version and rowq_version, which each migration writes. A
-- further row is the first part of the names of the channels of notifications, and for a queue for
-- which maintain has failed, maintain_fault.<queue_id> is the error.
create table if not exists rowq.meta (
    name       text not null,
    value      text not null,
    changed_at timestamp with time zone not null default clock_timestamp(),
    constraint meta_pk primary key (name)
);

-- Every account may listen to a channel, or notify it, if it can name it. So the names of the
-- channels begin with a text of this installation that no other account can guess.
insert into rowq.meta (name, value)
values ('channel', 'rowq_' || replace(gen_random_uuid()::text, '-', ''))
on conflict (name) do nothing;

-- A row holds the settings of a queue. queue_id stands first in the key of every table below and is
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
    constraint queue_max_attempts_ck check (max_attempts between 1 and 10000),
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

-- A row is what the producer handed over. It is written once and deleted once, except that the
-- first message that waits for it sets has_successors.
create table if not exists rowq.message (
    queue_id       integer not null,
    max_attempts   smallint,
    message_id     bigint not null default nextval('rowq.message_seq'),
    enqueued_at    timestamp with time zone not null,
    message_type   text,
    dedup_key      text,
    group_key      text,
    headers        jsonb,
    body           text,
    body_binary    bytea,
    has_successors boolean,
    expires_at     timestamp with time zone,
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

-- A row is a message that waits for a worker. The primary key is the dequeue order, and there is no
-- second index. lane is priority * 2, plus 1 for the tail: a message that is released or reaped
-- goes to the front lane, so that seq only grows inside a lane.
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

-- A row is a message that waits for its time, kept apart so that dequeue does not read it.
-- group_key is of one that joins its group when it is due; one that is retried has its slot, and
-- none here.
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

-- A row is a slot: the right of one message of a group to be ready, leased or delayed for a retry.
-- It does not say whose it is: whoever finishes a message of the group passes one on or gives it
-- back, in the transaction that ends the message. Rows are inserted, locked and deleted, never
-- updated. A producer that joins the group locks all of its rows, so that nobody gives the last one
-- back while a message is coming.
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

-- A row is a message that waits behind others of its group, kept apart so that dequeue does not
-- read it.
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

-- A row is a message that waits for others to end, its predecessors, kept apart so that dequeue
-- does not read it. It waits for one of them at a time, the newest that has not ended
-- (predecessor_id, with a row in successor); remaining_ids are the others that it may still have to
-- ask for, in order.
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

-- A row says which message waits for which other one. Whoever ends a message whose has_successors
-- is true deletes its rows, in the same transaction.
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

-- A row is something that has to be looked at again, because another transaction held what was
-- looked at, or because there was too much of it. With a group_key it is a slot that its last
-- owner could not pass on, or whose group rests; is_hint says that there is no slot yet: the
-- group's limit was raised, and there may be one to take. With a message_id it is a blocked message
-- that waits for nothing any more, perhaps. With a predecessor_id it is a message that has ended,
-- of which not all successors were freed; is_hint says that it is dead. With the same id as both it
-- is a message that has ended, and whose row another transaction had locked. maintain looks at what
-- is due, and so does a dequeue that finds nothing.
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

-- A row is one successful dequeue: the messages of the batch as parallel arrays under one lease.
-- errors is null when no message of the batch has failed before. A heartbeat updates lease_until in
-- place, because lease_until is in no index and fillfactor leaves it room. cancel_ids is null but
-- where messages were cancelled while the worker had them.
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

-- A row is a message that failed for good. It stays until it is reset, cancelled or purged.
-- holds_slot is true where it has kept the slot of its group, and else null.
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

-- A row is the dedup key of an unfinished message.
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

-- A row says when maintain looks whether a message has expired, and where it is if it is ready
-- then. Who adds a message adds one, and so does who makes it ready under a new number or gives it
-- back: maintain can forget a row whose message it does not find. A row stays until its moment,
-- also where the message has ended before. So that is no later than a day, and maintain puts it off
-- for another day until the message expires.
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

-- A row is a batch of finished messages of a queue that keeps an archive. It stays until the
-- archive routine has moved the messages.
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

-- A row is a finished message. There is one partition a day (archive_YYYYMMDD, UTC), which is
-- dropped when no queue needs it.
create table if not exists rowq.archive (
    queue_id     integer not null,
    lane         smallint not null,
    attempt      smallint not null,
    message_id   bigint not null,
    enqueued_at  timestamp with time zone not null,
    finished_at  timestamp with time zone not null,
    state        text not null,
    message_type text,
    dedup_key    text,
    headers      jsonb,
    body         text,
    body_binary  bytea,
    group_key    text,
    constraint archive_pk primary key (queue_id, finished_at, message_id)
) partition by range (finished_at);

create index if not exists archive_message_ix on rowq.archive (queue_id, message_id);

-- A row says where the live rows of a lane begin, so that no reader walks the dead rows before
-- them, however long an old snapshot keeps those from being cleaned up. The table is append-only:
-- rows are added and deleted and never updated. generation counts down, so that the newest row of a
-- lane is the first in the key and is found in one step. Lanes below 0 stand for the other tables
-- that are read from their low end: -1 claim (by claim_id), -2 delayed (by due_at, in
-- microseconds), -3 finished (by finish_id), -4 deferred (by due_at, in microseconds), which only
-- queues with groups have, -5 started (by started_at, in microseconds), which only those with a
-- rate_limit have, -6 expiry (by expires_at, in microseconds), which only those with messages that
-- expire have, -7 result (by finished_at, in microseconds), which only those have that have purged
-- results, and -8 history (by ended_at, in microseconds), which only those have that have purged
-- history. A lane that has never been maintained has rows with positive generations, which
-- producers have written.
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

-- A row is a schedule: maintain adds its message to the queue in the transaction that moves
-- next_run_at on. next_run_at is null while it is paused, and after its last tick.
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
    constraint schedule_pk primary key (queue_id, schedule_name),
    constraint schedule_cron_ck check ((cron is null) <> (interval_seconds is null)),
    constraint schedule_missed_ck check (missed in ('skip', 'once', 'all'))
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    fillfactor = 50
);

-- A row is the right to take messages of a queue that has limits: a dequeue locks it before it
-- counts what is leased. It is never updated, so that there are no dead rows, however long an old
-- snapshot is kept. To enqueue it says that the queue is still there, so that the statement which
-- adds a message reads the tables of one queue only, and not queue.
create table if not exists rowq.limit_lock (
    queue_id integer not null,
    constraint limit_lock_pk primary key (queue_id)
);

-- A row says when a dequeue of a queue with a rate_limit has begun deliveries, and how many. It
-- stays until maintain finds it older than rate_seconds.
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

-- A row says how a message has ended, in a queue with result_seconds. It stays until maintain finds
-- it older than these, or the message, which is dead, is reset.
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

-- A row is an attempt that has ended, in a queue with history_days. It stays until maintain finds
-- it older than these. There is no partition a day as in the archive, because a partition is
-- dropped under a lock on the whole table, for which every call that ends messages would wait.
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
        outcome in ('completed', 'retrying', 'dead', 'released', 'lease_expired', 'cancelled')
    )
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

create index if not exists history_message_ix on rowq.history (queue_id, message_id);

-- A row says that a queue gets what is published under the topics that a pattern matches. Where a
-- pattern has no "*", a topic that begins with literal_prefix needs no other look. shape has a
-- digit for each word of the pattern: 1 for "*", 2 for "#", 0 for any other. Bindings are few and
-- seldom change, and a producer locks none of them.
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

-- A row is a worker process that has reported. It is deleted when the worker ends; one that was
-- killed is deleted an hour after its last report, by the report of another worker of the queue.
-- The rates are those between the last two reports.
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
