-- Tables of rowq on MariaDB and MySQL, in the order of installation.
--
-- queue holds the settings, message the bodies. A message waits in ready, delayed, group_waiting or
-- blocked, is leased in claim, and ends in finished and archive or in dead. The other tables belong
-- to features: a queue that does not use one has no rows there. drop_queue deletes a queue's rows
-- everywhere. A hot table has one index, its primary key, so that locks come in one order. Names
-- and keys are bytes, because collations ignore trailing blanks. Sentinel rows end each range.
--
-- Each statement can run again. Each table is a unit: an upgrade installs the units that changed.

-- One database, named rowq. Everything is utf8mb4 and compared byte by byte. Names and keys are
-- bytes, because even a binary collation ignores trailing blanks.
create database if not exists rowq character set utf8mb4 collate utf8mb4_bin;

-- One row per fact about the installation. Migrations write schema_version and rowq_version.
-- maintain writes its last error for a queue to maintain_fault.<queue_id>, and deletes it when it
-- succeeds.
create table if not exists rowq.meta (
    name       varchar(100) not null comment 'Name of the value.',
    value      varchar(500) not null comment 'Value.',
    changed_at datetime(6) not null default current_timestamp(6) comment 'Time at which the value was set.',
    primary key (name)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Installed versions: schema_version and rowq_version.';

-- One row per queue: its settings. create_queue inserts it, alter_queue, pause_queue and
-- resume_queue change it, drop_queue deletes it. A queue_id is never reused. The name is bytes, so
-- that case, accents and trailing blanks matter. All times are UTC.
create table if not exists rowq.queue (
    queue_id             int not null auto_increment comment 'Queue; never reused.',
    queue_name           varbinary(400) not null comment 'Name of the queue.',
    lease_seconds        int not null default 30 comment 'Setting: default length of a lease.',
    max_attempts         smallint not null default 10 comment 'Leases before the message is dead; null uses the queue''s setting.',
    backoff_base_seconds double not null default 5 comment 'Setting: delay before the second attempt.',
    backoff_factor       double not null default 2 comment 'Setting: growth of the delay.',
    backoff_cap_seconds  double not null default 3600 comment 'Setting: maximum delay.',
    backoff_jitter       double not null default 0.2 comment 'Setting: share of a delay that is subtracted at random.',
    archive_days         int not null default 0 comment 'Setting: days in the archive.',
    max_body_length      int not null default 1048576 comment 'Setting: maximum length of a body.',
    group_limit          smallint not null default 1 comment 'Setting: messages of one group processed at a time.',
    group_after_dead     varchar(20) not null default 'continue' comment 'Setting: continue or hold.',
    group_pause_seconds  double not null default 0 comment 'Setting: pause after each message of a group.',
    max_leased           int not null default 0 comment 'Setting: maximum number of leased messages; 0 means no limit.',
    rate_limit           int not null default 0 comment 'Setting: maximum number of deliveries per rate_seconds; 0 means no limit.',
    rate_seconds         double not null default 1 comment 'Setting: interval for rate_limit.',
    result_seconds       double not null default 0 comment 'Setting: seconds to keep results; 0 means none.',
    history_days         int not null default 0 comment 'Setting: days to keep attempts; 0 means none.',
    has_started          boolean not null default false comment 'True once the queue has had a rate_limit: started may have rows.',
    has_results          boolean not null default false comment 'True once the queue has had result_seconds: result may have rows.',
    has_history          boolean not null default false comment 'True once the queue has had history_days: history may have rows.',
    paused_at            datetime(6) null comment 'Start of the pause; null if the queue is not paused.',
    created_at           datetime(6) not null comment 'Time at which the queue was created.',
    primary key (queue_id),
    unique key queue_name_uq (queue_name),
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
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Queues and their settings.';

-- One row per queue, never changed. A call that adds or moves messages locks it in share mode until
-- its transaction ends; drop_queue locks it exclusively. It is separate from queue so that pausing
-- and altering never wait for a producer.
create table if not exists rowq.queue_lock (
    queue_id int not null comment 'Queue; never reused.',
    primary key (queue_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'One row per queue, locked while messages are added or moved. Never updated.';

-- One row per lane. create_queue inserts 20 for messages (priority * 2, plus 1 for the tail) and
-- those below 0, which are other tables: -1 claim (claim_id), -2 delayed (due_at), -3 finished
-- (finish_id), -4 deferred (due_at), -5 started (started_at), -6 expiry (expires_at), -7 result
-- (finished_at), -8 history (ended_at); times in microseconds since 1970. -9 is the claims again,
-- for limits: its floor never passes a claim that may yet be committed.
--
-- floor is where the live rows of the lane begin. It is approximate: readers skip the dead rows
-- below it, which InnoDB keeps while a read view can see them. dequeue moves it up past what it
-- leased, at most to half a second before now. maintain scans from 0 (internal_rescan_floors) and
-- corrects it, so a wrong floor delays a message and never loses one.
--
-- A lock on one of these rows elects a session: on -1 for maintain, on -3 for its archive, on -20
-- (no table) for the waiter that polls for all.
--
-- dequeue does not read a closed lane, and takes the fast path if only one is open. The tail of the
-- default priority (11) is always open. The first message opens another lane, and maintain closes
-- an empty front lane, not before its sweep_at. If an open transaction has locked the row of a
-- closed lane, is_open of a lane below 0 makes dequeue read closed lanes too: maintain sets it for
-- lane -1; other calls insert an open-lane request, a row of a random lane below -1000, which
-- maintain deletes. maintain skips an idle queue until the sweep_at of lane -1.
create table if not exists rowq.lane (
    queue_id    int not null comment 'Queue; never reused.',
    lane        smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 is a table lane.',
    is_open     boolean not null default false comment 'True if dequeue reads the lane. A lane below 0 uses it as a flag of its own.',
    floor       bigint not null default 0 comment 'First live row of the lane; approximate until the next maintain.',
    check_after datetime(6) not null default '1970-01-01 00:00:00' comment 'Earliest time of the lane''s next rescan.',
    sweep_at    datetime(6) not null default '1970-01-01 00:00:00' comment 'Earliest time of the next sweep: a rescan from the beginning.',
    primary key (queue_id, lane)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Lanes of each queue and the first live row of each, so that no reader scans the dead rows before it.'
stats_persistent = 1 stats_auto_recalc = 0;

-- One row per queue. A dequeue from a limited queue locks it before counting, and updates
-- last_claim_id if it leases: a caller's transaction compares it to detect an old snapshot, and
-- maintain learns which claims exist. No index changes, so there are no dead rows.
create table if not exists rowq.limit_lock (
    queue_id      int not null comment 'Queue; never reused.',
    last_claim_id bigint not null default 0 comment 'Newest claim made under the queue''s limits.',
    primary key (queue_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'One row per queue. A dequeue of a limited queue locks it before counting.';

-- One row per message. enqueue, publish or a schedule inserts it, and the transaction that ends the
-- message deletes it (maintain, if the queue has archive_days). A failure before another attempt
-- sets last_error and due_at, reset restores last_error, and the first message that waits for it
-- sets has_successors. The error of a dead message is in dead. enqueued_at finds a message that was
-- never returned: its seq in ready is the same time in microseconds. due_at is its last position in
-- delayed.
create table if not exists rowq.message (
    message_id     bigint not null auto_increment comment 'Message id.',
    queue_id       int not null comment 'Queue; never reused.',
    max_attempts   smallint null comment 'Leases before the message is dead; null uses the queue''s setting.',
    enqueued_at    datetime(6) not null comment 'Time of the enqueue.',
    due_at         datetime(6) null comment 'Time at which a delayed message becomes ready.',
    message_type   varchar(200) null comment 'Label set by the producer.',
    dedup_key      varbinary(800) null comment 'Dedup key set by the producer.',
    headers        json null comment 'Headers set by the producer.',
    body           longtext null comment 'Text body, or null.',
    body_binary    longblob null comment 'Binary body, or null.',
    last_error     varchar(2000) null comment 'Last error, or null.',
    group_key      varbinary(800) null comment 'Group key set by the producer.',
    has_successors boolean null comment 'True if a message has waited for this one; null for no.',
    expires_at     datetime(6) null comment 'Time after which maintain expires the message, or null.',
    producer_name  varchar(200) null comment 'Name of the producer, or null.',
    primary key (message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages: inserted by enqueue, deleted when they end.'
stats_persistent = 1 stats_auto_recalc = 0;

-- One row per message that a worker can lease. enqueue, promote, reap, release, reset and the calls
-- that resume a message insert it; dequeue deletes it, or cancel, purge_queue or an expiry. The
-- primary key is the dequeue order, and there is no second index. lane is priority * 2, plus 1 for
-- the tail: a released or reaped message goes to the front lane. seq is the time of insertion, in
-- microseconds since 1970 UTC, plus the position in its batch, so that producers share no number
-- generator; message_id breaks ties.
--
-- Each lane ends in two sentinel rows (message_id 0; seq 2^63 - 2 and 2^63 - 1), because InnoDB
-- compares the end of a range with live rows only: without them a scan would read the dead rows of
-- the next lane. Only drop_queue deletes them. Every reader says "force index (primary)" and "seq <
-- 9223372036854775806", and selects attempt, because a covering plan would drop the range and
-- ignore the floor. is_keyed is false if the message is known to have no key; it is true for a
-- returned or delayed message.
create table if not exists rowq.ready (
    queue_id   int not null comment 'Queue; never reused.',
    lane       smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 is a table lane.',
    seq        bigint not null comment 'Position in the lane; it only increases.',
    message_id bigint not null comment 'Message id.',
    attempt    smallint not null default 0 comment 'Number of leases so far.',
    is_keyed   boolean not null default true comment 'False if no message has a dedup key or a group key.',
    primary key (queue_id, lane, seq, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages waiting for a worker. The primary key is the order of delivery.'
stats_persistent = 1 stats_auto_recalc = 0;

-- One row per message that is not due yet, so that dequeue does not read it. enqueue and
-- retry_later insert it; promote deletes it, or cancel, purge_queue or an expiry. The primary key
-- is the order in which messages become due. group_key is set if the message joins its group when
-- it is due; a retried message has its slot already. A queue ends in two sentinel rows (message_id
-- 0; due_at 9999-12-31 23:59:59.999998 and .999999). Readers skip them by "message_id > 0" or a
-- bound on due_at, and select attempt, as in ready.
create table if not exists rowq.delayed (
    queue_id   int not null comment 'Queue; never reused.',
    due_at     datetime(6) not null comment 'Time at which a delayed message becomes ready.',
    message_id bigint not null comment 'Message id.',
    lane       smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 is a table lane.',
    attempt    smallint not null default 0 comment 'Number of leases so far.',
    group_key  varbinary(800) null comment 'Group to join when the message is due; null if it holds its slot.',
    primary key (queue_id, due_at, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages waiting for their time.'
stats_persistent = 1 stats_auto_recalc = 0;

-- One row per claim: the messages of one dequeue under one lease. dequeue inserts it, extend_lease
-- updates lease_until, which is in no index, and the finishing routines and reap shrink or delete
-- it. If the ids are consecutive in delivery order, with one lane and attempt, the row has first_id
-- and last_id and no messages, a quarter of the work for a batch of 100. Any other batch is a JSON
-- array of arrays that begin with message_id, lane and attempt. A table of leased messages was as
-- fast, but REPEATABLE READ locks its ranges with their gaps, and every dequeue inserts at its end.
--
-- claim_id is uuid_short without the bits above 2^53, which some languages round: auto_increment
-- would need a second key. It grows with time on one server. is_keyed is false if no message has a
-- key. A queue begins with two sentinel rows (claim_id -2 and -1), which stop a scan that passes
-- the end of the previous queue, so readers say "claim_id > 0". cancel_ids is a JSON array of
-- messages cancelled while leased, else null. progress is null until a heartbeat sets it.
create table if not exists rowq.claim (
    queue_id    int not null comment 'Queue; never reused.',
    claim_id    bigint not null comment 'The claim that holds the lease; pass it to the finishing routines.',
    lease_until datetime(6) not null comment 'Time at which the lease expires.',
    worker_name varchar(200) null comment 'Name of the worker that holds the lease.',
    leased_at   datetime(6) not null default '1970-01-01 00:00:00' comment 'Time of the dequeue.',
    is_keyed    boolean not null default true comment 'False if no message has a dedup key or a group key.',
    lane        smallint null comment 'priority * 2, plus 1 for the tail; a lane below 0 is a table lane.',
    attempt     smallint null comment 'Number of leases so far.',
    first_id    bigint null comment 'First message of a batch with consecutive ids; null for any other batch.',
    last_id     bigint null comment 'Last message of a batch with consecutive ids; null for any other batch.',
    messages    longtext null comment 'The batch as a JSON array of message_id, lane and attempt; null if first_id to last_id describe it.',
    cancel_ids  longtext null comment 'Messages of the batch cancelled while leased; null if none.',
    progress    varchar(2000) null comment 'Last progress text of the worker.',
    primary key (queue_id, claim_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'One row per successful dequeue: the lease of a batch.'
stats_persistent = 1 stats_auto_recalc = 0;

-- One row per dead message. fail_now, retry_later, reap or a dead predecessor inserts it; reset,
-- discard_dead, cancel or purge_queue deletes it. last_error is here because a producer that has
-- just named the message may have locked its row in message. holds_slot is true if the message
-- keeps its group slot, else null.
create table if not exists rowq.dead (
    queue_id    int not null comment 'Queue; never reused.',
    message_id  bigint not null comment 'Message id.',
    lane        smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 is a table lane.',
    attempt     smallint not null comment 'Number of leases so far.',
    died_at     datetime(6) not null comment 'Time at which the message died.',
    last_error  varchar(2000) null comment 'Last error, or null.',
    holds_slot boolean null comment 'True if the dead message keeps its slot, so that its group waits; else null.',
    primary key (queue_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Dead messages, until they are reset, cancelled or purged.';

-- One row per dedup key of an unfinished message. enqueue or reset inserts it; the transaction that
-- ends the message or makes it dead deletes it. A key that begins with the byte FF, which UTF-8
-- does not have, means that the message has ended but its row was locked; maintain deletes both
-- rows, or the next message with that key does. The row format is named: other formats, which may
-- be the server's default, take no key above 767 bytes.
create table if not exists rowq.dedup (
    queue_id   int not null comment 'Queue; never reused.',
    dedup_key  varbinary(801) not null comment 'Dedup key set by the producer.',
    message_id bigint not null comment 'Message id.',
    primary key (queue_id, dedup_key)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Dedup keys of unfinished messages.'
row_format = dynamic stats_persistent = 1 stats_auto_recalc = 0;

-- One row per message that waits for a slot of its group, so that dequeue does not read it. The end
-- of another message of the group deletes it, or cancel, purge_queue or an expiry. Readers of one
-- group use "=", so that InnoDB stops at its end. A queue ends in two sentinel rows (message_id 0;
-- group_key FF and FFFF) for readers of all groups, which say "message_id > 0" or "group_key <
-- x'FF'".
create table if not exists rowq.group_waiting (
    queue_id   int not null comment 'Queue; never reused.',
    group_key  varbinary(800) not null comment 'Group key set by the producer.',
    message_id bigint not null comment 'Message id.',
    lane       smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 is a table lane.',
    primary key (queue_id, group_key, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages waiting behind others of their group.'
row_format = dynamic stats_persistent = 1 stats_auto_recalc = 0;

-- One row per slot: the right of one message of a group to be ready, leased or delayed for a retry.
-- A producer inserts it; the transaction that ends a message of the group passes it to the next one
-- or deletes it. It does not name its message, and is never updated. A producer that joins the
-- group locks all slots of the group, so that none is deleted while its message is uncommitted.
create table if not exists rowq.group_slot (
    queue_id  int not null comment 'Queue; never reused.',
    group_key varbinary(800) not null comment 'Group key set by the producer.',
    slot_no   smallint not null comment 'Number of the slot in its group, from 1.',
    primary key (queue_id, group_key, slot_no)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Slots: a group''s message needs one to be ready, leased or waiting for a retry.'
row_format = dynamic stats_persistent = 1 stats_auto_recalc = 0;

-- One row per message with unfinished predecessors, so that dequeue does not read it. It waits for
-- one at a time, the newest unfinished (predecessor_id, with a row in successor); remaining_ids are
-- the others, newest first. The transaction that ends the last predecessor deletes it. Rows are
-- found by their full keys; only purge_queue scans.
create table if not exists rowq.blocked (
    queue_id       int not null comment 'Queue; never reused.',
    message_id     bigint not null comment 'Message id.',
    lane           smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 is a table lane.',
    predecessor_id bigint null comment 'Predecessor that the message waits for now; null if it is still to be determined.',
    due_at         datetime(6) null comment 'Earliest delivery of the message, if it has one.',
    on_dead        varchar(20) null comment 'If a predecessor dies: hold, continue or fail; null means hold.',
    group_key      varbinary(800) null comment 'Group to join when no predecessor is left.',
    remaining_ids  longtext null comment 'Further messages that it may wait for, in order.',
    primary key (queue_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages waiting for predecessors.'
stats_persistent = 1 stats_auto_recalc = 0;

-- One row per blocked message: message_id waits for predecessor_id. The transaction that ends the
-- predecessor deletes it. Readers use "=" for queue and predecessor, so that InnoDB stops at their
-- end.
create table if not exists rowq.successor (
    queue_id       int not null comment 'Queue; never reused.',
    predecessor_id bigint not null comment 'Predecessor that the message waits for now; null if it is still to be determined.',
    message_id     bigint not null comment 'Message id.',
    primary key (queue_id, predecessor_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'One row per successor and predecessor that it waits for.'
stats_persistent = 1 stats_auto_recalc = 0;

-- One row per deferred action. A call inserts it if another transaction holds what it needs, or if
-- there is too much to do; maintain runs and deletes it when due, as does a dequeue that finds
-- nothing. A queue ends in two sentinel rows (deferred_id 0), as in delayed, and readers select
-- is_hint.
-- - group_key: a slot that could not be passed on, or whose group pauses. With is_hint there may be
--   no slot yet: group_limit was raised.
-- - message_id: a blocked message that may have no unfinished predecessor.
-- - predecessor_id: an ended message whose successors are not all resumed. With is_hint it is dead.
-- - message_id = predecessor_id: an ended message whose row another transaction had locked.
-- - none of the three: dedup has keys to delete.
create table if not exists rowq.deferred (
    queue_id       int not null comment 'Queue; never reused.',
    due_at         datetime(6) not null comment 'maintain retries the row from this time on.',
    deferred_id    bigint not null comment 'Makes the key unique.',
    message_id     bigint null comment 'Blocked message that may be ready to resume.',
    predecessor_id bigint null comment 'Ended message with successors still to resume.',
    group_key      varbinary(800) null comment 'Group of the slot; null if the row is not about a slot.',
    is_hint        boolean not null default false comment 'For a group: the slot may be missing. For a predecessor: it is dead.',
    primary key (queue_id, due_at, deferred_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Work that was locked by other sessions: group slots to pass on, successors to resume. maintain retries it.'
stats_persistent = 1 stats_auto_recalc = 0;

-- One row per dequeue from a queue with a rate_limit: when it started how many deliveries. maintain
-- deletes it once it is older than rate_seconds. A queue begins with two sentinel rows (claim_id -2
-- and -1), so readers say "claim_id > 0" or name the time to start from.
create table if not exists rowq.started (
    queue_id   int not null comment 'Queue; never reused.',
    started_at datetime(6) not null comment 'Time of the dequeue.',
    claim_id   bigint not null comment 'The claim that holds the lease; pass it to the finishing routines.',
    messages   int not null comment 'Messages leased by the dequeue.',
    primary key (queue_id, started_at, claim_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Deliveries within rate_seconds of queues with a rate_limit: one row per dequeue.'
stats_persistent = 1 stats_auto_recalc = 0;

-- One row per time at which maintain checks a message for expiry, and where it is if it is ready
-- then. A producer inserts it, and so does any call that moves the message to ready under a new
-- number. maintain deletes it at its time, also if the message has ended. So the time is at most a
-- day ahead, and maintain postpones it by a day until the message expires. A queue ends in two
-- sentinel rows (expiry_id 0), as in delayed, and readers select message_id, which is not in the
-- key.
create table if not exists rowq.expiry (
    queue_id   int not null comment 'Queue; never reused.',
    expires_at datetime(6) not null comment 'Time from which maintain expires the message.',
    expiry_id  bigint not null comment 'Makes the key unique.',
    message_id bigint not null comment 'Message id.',
    lane       smallint null comment 'Lane of the message if it is ready.',
    seq        bigint null comment 'Position of the message in that lane; null if the row was written for another state.',
    primary key (queue_id, expires_at, expiry_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Expiry times of messages; maintain expires those that are due and unfinished.'
stats_persistent = 1 stats_auto_recalc = 0;

-- One row per ended message of a queue with result_seconds. The transaction that ends the message
-- inserts it; maintain deletes it when it is too old, and reset that of a dead message. Rows are
-- locked by the primary key only; maintain reads the other index without a lock. There a queue ends
-- in two sentinel rows (message_id below 1), as in delayed, and readers select state, which is not
-- in that index.
create table if not exists rowq.result (
    queue_id    int not null comment 'Queue; never reused.',
    message_id  bigint not null comment 'Message id.',
    finished_at datetime(6) not null comment 'Time at which the message was completed, cancelled, expired or declared dead.',
    state       varchar(20) not null comment 'completed, cancelled, expired or dead.',
    result      json null comment 'Result passed to complete, or null.',
    last_error  varchar(2000) null comment 'Last error, or null.',
    primary key (queue_id, message_id),
    key result_finished_ix (queue_id, finished_at)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Outcomes and results of ended messages, kept for the queue''s result_seconds.'
stats_persistent = 1 stats_auto_recalc = 0;

-- One row per ended attempt in a queue with history_days. The call that ends the attempt inserts
-- it; maintain deletes it when it is too old. There are no partitions: adding or dropping one waits
-- for all open transactions, and every later call waits behind it. A queue ends in two sentinel
-- rows (message_id 0), as in delayed, and readers by the primary key select outcome, which is not
-- in it.
create table if not exists rowq.history (
    queue_id    int not null comment 'Queue; never reused.',
    ended_at    datetime(6) not null comment 'End of the attempt.',
    message_id  bigint not null comment 'Message id.',
    attempt     smallint not null comment 'Number of leases so far.',
    claim_id    bigint not null comment 'Claim that held the message.',
    worker_name varchar(200) null comment 'Name of the worker that held the lease.',
    leased_at   datetime(6) not null comment 'Time of the dequeue.',
    outcome     varchar(20) not null comment 'completed, retrying, dead, released, snoozed, lease_expired or cancelled.',
    error       varchar(2000) null comment 'Error reported by the worker, or that the lease expired; else null.',
    primary key (queue_id, ended_at, message_id, claim_id),
    key history_message_ix (queue_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Attempts that have ended, kept for the queue''s history_days.'
stats_persistent = 1 stats_auto_recalc = 0;

-- One row per batch of ended messages of a queue with archive_days, as a JSON array like that of a
-- claim. The finishing routines insert it; maintain moves the messages to archive and deletes it. A
-- queue begins with two sentinel rows (finish_id -2 and -1), so readers say "finish_id > 0".
create table if not exists rowq.finished (
    queue_id    int not null comment 'Queue; never reused.',
    finish_id   bigint not null auto_increment comment 'Call that finished the messages; the archive follows this order.',
    finished_at datetime(6) not null comment 'Time at which the message was completed, cancelled, expired or declared dead.',
    state       varchar(20) not null comment 'completed, cancelled or expired.',
    messages    longtext not null comment 'The batch as a JSON array of message_id, lane and attempt.',
    primary key (queue_id, finish_id),
    key finish_id_ix (finish_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Finished messages of queues with an archive, until archive moves them.'
stats_persistent = 1 stats_auto_recalc = 0;

-- One row per archived message. maintain inserts it. There is one partition per day (pYYYYMMDD,
-- UTC), which is dropped when no queue needs it. The last partition takes every later day; maintain
-- splits days off it.
create table if not exists rowq.archive (
    queue_id      int not null comment 'Queue; never reused.',
    finished_at   datetime(6) not null comment 'Time at which the message was completed, cancelled, expired or declared dead.',
    message_id    bigint not null comment 'Message id.',
    lane          smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 is a table lane.',
    attempt       smallint not null comment 'Number of leases so far.',
    enqueued_at   datetime(6) not null comment 'Time of the enqueue.',
    state         varchar(20) not null comment 'completed, cancelled or expired.',
    message_type  varchar(200) null comment 'Label set by the producer.',
    dedup_key     varbinary(800) null comment 'Dedup key set by the producer.',
    headers       json null comment 'Headers set by the producer.',
    body          longtext null comment 'Text body, or null.',
    body_binary   longblob null comment 'Binary body, or null.',
    group_key     varbinary(800) null comment 'Group key set by the producer.',
    producer_name varchar(200) null comment 'Name of the producer, or null.',
    primary key (queue_id, finished_at, message_id),
    key archive_message_ix (queue_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Finished messages, kept for the queue''s archive_days.'
partition by range columns (finished_at) (
    partition plater values less than (maxvalue)
);

-- One row per schedule. create_schedule inserts it, drop_schedule deletes it. maintain enqueues its
-- message in the transaction that advances next_run_at, which is null while the schedule is paused
-- and after its last tick. A queue has few, so all are read to find the due ones. is_running is
-- true while a schedule that counts from the end waits for the end of a message.
create table if not exists rowq.schedule (
    queue_id         int not null comment 'Queue; never reused.',
    schedule_name    varbinary(400) not null comment 'Name of the schedule.',
    cron             varchar(200) null comment 'Crontab expression, or null.',
    interval_seconds double null comment 'Seconds between runs, or null.',
    time_zone        varchar(64) not null comment 'Time zone of cron.',
    missed           varchar(20) not null comment 'Policy for late ticks: skip, once or all.',
    overlap          boolean not null comment 'False if a run adds no message while an earlier one is unfinished.',
    starts_at        datetime(6) not null comment 'Earliest run; intervals count from it.',
    ends_at          datetime(6) null comment 'Latest run, or null.',
    message_type     varchar(200) null comment 'Label set by the producer.',
    headers          json null comment 'Headers set by the producer.',
    priority         smallint not null comment '0 to 9; 0 is delivered first.',
    group_key        varbinary(800) null comment 'Group key set by the producer.',
    max_attempts     smallint null comment 'Leases before the message is dead; null uses the queue''s setting.',
    body             longtext null comment 'Text body, or null.',
    body_binary      longblob null comment 'Binary body, or null.',
    is_paused        boolean not null default false comment 'True if the queue delivers nothing, or the schedule adds no messages.',
    next_run_at      datetime(6) null comment 'Next run; null if the schedule is paused or has ended. With counts_from end, while the message before is unfinished: the next check.',
    last_run_at      datetime(6) null comment 'Time of the last run, or null.',
    last_message_id  bigint null comment 'Message of the last run, or null.',
    last_error       varchar(2000) null comment 'Last error, or null.',
    counts_from      varchar(10) not null default 'start' comment 'What interval_seconds counts from: start, or the end of the message before.',
    is_running       boolean not null default false comment 'True while a schedule that counts from the end waits for the end of a message.',
    primary key (queue_id, schedule_name),
    constraint schedule_cron_ck check ((cron is null) <> (interval_seconds is null)),
    constraint schedule_missed_ck check (missed in ('skip', 'once', 'all')),
    constraint schedule_counts_from_ck check (counts_from in ('start', 'end'))
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Schedules. maintain enqueues their messages when they are due.'
row_format = dynamic stats_persistent = 1 stats_auto_recalc = 0;

-- One row per topic pattern of a queue. bind_topic inserts it and unbind_topic deletes it, both
-- with the row of queue_lock in share mode; producers lock none. If a pattern has no "*", a topic
-- that begins with literal_prefix matches.
create table if not exists rowq.topic_binding (
    queue_id      int not null comment 'Queue; never reused.',
    topic_pattern varbinary(200) not null comment 'Topic pattern.',
    word_count    smallint not null comment 'Number of words of the pattern without #.',
    matches_rest  boolean not null comment 'True if the pattern ends with #: any number of further words matches.',
    literal_prefix varbinary(200) not null comment 'Words before the first * or #, which the topic must start with.',
    like_pattern  varbinary(400) null comment 'LIKE pattern for the topic''s first word_count words, with ! as the escape; null if literal_prefix suffices.',
    shape         varbinary(100) not null comment 'One digit per word of the pattern: 1 for *, 2 for #, 0 otherwise.',
    primary key (queue_id, topic_pattern),
    key topic_binding_prefix_ix (literal_prefix, word_count, matches_rest, like_pattern, shape),
    key topic_binding_pattern_ix (topic_pattern)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Topic patterns of the queues.';

-- One row per worker process. report_worker inserts, updates and deletes it, and deletes those of
-- killed workers after an hour. The rates are those between the last two reports.
create table if not exists rowq.worker (
    queue_id             int not null comment 'Queue; never reused.',
    worker_id            varbinary(64) not null comment 'Id of the worker process.',
    worker_name          varchar(200) null comment 'Name of the worker that holds or held the lease.',
    host_name            varchar(200) null comment 'Host of the worker, or null.',
    worker_version       varchar(200) null comment 'Version of the worker, or null.',
    threads              int not null comment 'Number of handlers the worker runs at a time.',
    started_at           datetime(6) not null comment 'Time of the worker''s first report.',
    last_seen_at         datetime(6) not null comment 'Time of the worker''s last report.',
    completed            bigint not null comment 'Messages completed since the worker started.',
    failed               bigint not null comment 'Failed attempts since the worker started.',
    completed_per_second double not null default 0 comment 'Messages completed per second between the last two reports.',
    failed_per_second    double not null default 0 comment 'Failed attempts per second between the last two reports.',
    primary key (queue_id, worker_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Worker processes and their reported throughput.'
stats_persistent = 1 stats_auto_recalc = 0;
