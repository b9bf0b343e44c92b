-- Tables of rowq on MariaDB and MySQL, in the order of installation.
--
-- queue has the settings; message has what producers handed in. A message waits in one of ready,
-- delayed, group_waiting or blocked, is leased in claim, and ends in finished and archive or in
-- dead. The rest belongs to features: a queue that does not use one has no rows there. A hot table
-- has one index, its primary key, so that locks come in one order. Names and keys are bytes,
-- because collations ignore trailing blanks. Sentinel rows end each range.
--
-- Each statement may run again. Each table is a unit: an upgrade brings the tables that changed,
-- and its migration says how.

-- There is one database, named rowq. Everything is utf8mb4 and is compared byte by byte. Names and
-- keys are kept as bytes, because even a binary collation ignores trailing blanks.
create database if not exists rowq character set utf8mb4 collate utf8mb4_bin;

-- The rows say what is installed: schema_version and rowq_version, which each migration writes. For
-- a queue for which maintain has failed, maintain_fault.<queue_id> is the error.
create table if not exists rowq.meta (
    name       varchar(100) not null comment 'Name of the value.',
    value      varchar(500) not null comment 'Value.',
    changed_at datetime(6) not null default current_timestamp(6) comment 'Time at which the value was set.',
    primary key (name)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Installed versions: schema_version and rowq_version.';

-- A row holds the settings of a queue. queue_id stands for the queue in the tables below and is
-- never reused. The name is bytes, so that upper case, accents and trailing blanks matter. All
-- times are UTC.
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
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Queues and their settings.';

-- A row stands for one queue and never changes. A call that adds or moves messages locks it in
-- share mode to the end of its transaction, and drop_queue locks it exclusively. The row of table
-- queue is not used for this, so that pausing and altering a queue never wait for a producer.
create table if not exists rowq.queue_lock (
    queue_id int not null comment 'Queue; never reused.',
    primary key (queue_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'One row per queue, locked while messages are added or moved. Never updated.';

-- A row is a lane of a queue. create_queue makes twenty for messages (priority * 2, plus 1 for the
-- tail). floor is where the live rows of the lane begin: a hint that spares readers the dead rows
-- below it, which InnoDB keeps as long as a read view may want them. dequeue moves the floor up
-- behind what it took, but never nearer than half a second to now. maintain looks from 0
-- (internal_rescan_floors) and corrects the floor, so a wrong floor delays a message and never
-- loses one. Lanes below 0 stand for the other tables that are read from their low end: -1 claim
-- (claim_id), -2 delayed (due_at in microseconds since 1970), -3 finished (finish_id), -4 deferred
-- (due_at, too), -5 started (started_at, too), -6 expiry (expires_at, too), -7 result (finished_at,
-- too), -8 history (ended_at, too), and -9 the claims once more, for those who count them: its
-- floor never passes a claim that may yet be committed. A lock on one of these rows elects one
-- session: on -1 for maintain, on -3 for its archive part, and on -20, which stands for no table,
-- for the waiter of dequeue_wait that looks for all. Dequeue does not look into a closed lane, and
-- where only one is open, it takes the fast path. The tail of the default priority (11) is always
-- open; another lane is opened by the first message that is put there, and maintain closes an empty
-- front lane again, not before its sweep_at. While an open transaction holds the row of a closed
-- lane, so that others cannot open it, is_open of a lane below 0 has dequeue look into closed lanes
-- too: maintain sets it of lane -1, others leave an open-lane request, a row of a random lane that
-- is below -1000, which maintain deletes. maintain passes over an idle queue until the sweep_at of
-- lane -1.
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

-- A row is the right to take messages of a queue that has limits: a dequeue locks it before it
-- counts what is leased. last_claim_id tells a caller's transaction whether its snapshot is older
-- than that, and maintain which claims there have been. Each dequeue that leases updates it, while
-- it holds the row anyway; no index changes, so that there are no dead rows.
create table if not exists rowq.limit_lock (
    queue_id      int not null comment 'Queue; never reused.',
    last_claim_id bigint not null default 0 comment 'Newest claim made under the queue''s limits.',
    primary key (queue_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'One row per queue. A dequeue of a limited queue locks it before counting.';

-- A row is what the producer handed over. It is written once and deleted once; only a failure that
-- another attempt follows updates last_error and due_at, reset gives last_error back, and the first
-- message that waits for it sets has_successors. The error of a dead message is in dead.
-- enqueued_at finds a message that was never given back, because its seq in ready is the same
-- moment in microseconds. due_at is the last place that the message had in delayed.
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
    primary key (message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages: inserted by enqueue, deleted when they end.'
stats_persistent = 1 stats_auto_recalc = 0;

-- A row is a message that waits for a worker. The primary key is the dequeue order, and there is no
-- second index. lane is priority * 2, plus 1 for the tail: a message that is released or reaped
-- goes to the front lane. seq is the moment of entry, in microseconds since 1970 UTC, plus the
-- place in its batch, so that producers share no number generator; message_id decides between equal
-- ones. Each lane ends in two sentinel rows (message_id 0; seq 2^63 - 2 and 2^63 - 1), because
-- InnoDB compares the end of a range with live rows only: without them a scan would walk the dead
-- rows of the next lane. Every reader of a lane says "force index (primary)" and "seq <
-- 9223372036854775806", and selects attempt, because a covering plan would drop the range and
-- ignore the floor. Nothing but drop_queue deletes sentinel rows. is_keyed is false for a message
-- that is known to have no key; one that was given back or has waited for its time counts as one
-- that may have.
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

-- A row is a message that waits for its time, kept apart so that dequeue does not read it. The
-- primary key is the order in which messages become due. A queue ends in two sentinel rows
-- (message_id 0), as a lane of ready does: due_at 9999-12-31 23:59:59.999998 and .999999. Readers
-- pass over them by "message_id > 0" or by a bound on due_at, and select attempt, as those of ready
-- do. group_key is of one that joins its group when it is due; one that is retried has its slot,
-- and none here.
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

-- A row is one successful dequeue: the messages of the batch under one lease. Where their ids
-- follow each other in the order of delivery, and lane and attempt are the same, the row has
-- first_id and last_id, and messages is null; that is a quarter of the work for a batch of 100. Any
-- other batch is a JSON array of arrays that begin with message_id, lane and attempt, and the four
-- columns are null or count for nothing. A table of leased messages was as fast (batch 100 and 10,
-- measured), but REPEATABLE READ locks its ranges with their gaps, and every dequeue inserts at its
-- end; a lock on one row by its whole key covers no gap. A heartbeat updates lease_until, which is
-- in no index. claim_id is uuid_short without the bits above 2^53, which some languages round away:
-- auto_increment would ask for a second key. It grows in the order of time on one server. is_keyed
-- is false where no message has a key. A queue begins with two sentinel rows (claim_id -2 and -1):
-- a scan that passes the end of the previous queue stops there, and not after all dead rows. So
-- readers say "claim_id > 0". cancel_ids is a JSON array of ids, null but where messages were
-- cancelled while the worker had them. progress is null until a heartbeat says it.
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

-- A row is a message that failed for good. It stays until it is reset, cancelled or purged. The
-- reason is here, because its message row may be locked by a producer that has just named it, and
-- whoever declares it dead waits for nobody. holds_slot is true where it has kept the slot of its
-- group, and else null.
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

-- A row is the dedup key of an unfinished message, compared byte by byte. The byte FF, which no
-- text of UTF-8 has, before a key says that the message has ended or died, and that another
-- transaction had locked the row of the key. maintain deletes both, or the next message with that
-- key does. The row format is named, because others, which may be the server's default, take no key
-- of more than 767 bytes.
create table if not exists rowq.dedup (
    queue_id   int not null comment 'Queue; never reused.',
    dedup_key  varbinary(801) not null comment 'Dedup key set by the producer.',
    message_id bigint not null comment 'Message id.',
    primary key (queue_id, dedup_key)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Dedup keys of unfinished messages.'
row_format = dynamic stats_persistent = 1 stats_auto_recalc = 0;

-- A row is a message that waits behind others of its group, kept apart so that dequeue does not
-- read it. Those who look into one group name it by "=", so that InnoDB stops at its end. A queue
-- ends in two sentinel rows (message_id 0; group_key FF and FFFF, which no text is), as a lane of
-- ready does, for those who go from group to group. So these say "message_id > 0" or
-- "group_key < x'FF'".
create table if not exists rowq.group_waiting (
    queue_id   int not null comment 'Queue; never reused.',
    group_key  varbinary(800) not null comment 'Group key set by the producer.',
    message_id bigint not null comment 'Message id.',
    lane       smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 is a table lane.',
    primary key (queue_id, group_key, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages waiting behind others of their group.'
row_format = dynamic stats_persistent = 1 stats_auto_recalc = 0;

-- A row is a slot: the right of one message of a group to be ready, leased or delayed for a retry.
-- It does not say whose it is: whoever finishes a message of the group passes one on or gives it
-- back, in the transaction that ends the message. Rows are inserted, locked and deleted, never
-- updated. A producer that joins the group locks all of its rows, so that nobody gives the last one
-- back while a message is coming.
create table if not exists rowq.group_slot (
    queue_id  int not null comment 'Queue; never reused.',
    group_key varbinary(800) not null comment 'Group key set by the producer.',
    slot_no   smallint not null comment 'Number of the slot in its group, from 1.',
    primary key (queue_id, group_key, slot_no)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Slots: a group''s message needs one to be ready, leased or waiting for a retry.'
row_format = dynamic stats_persistent = 1 stats_auto_recalc = 0;

-- A row is a message that waits for others to end, its predecessors, kept apart so that dequeue
-- does not read it. It waits for one of them at a time, the newest that has not ended
-- (predecessor_id, with a row in successor); remaining_ids are the others that it may still have to
-- ask for, newest first. Rows are found by their whole keys; only purge_queue goes from one to the
-- next.
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

-- A row says which message waits for which other one. Whoever ends a message whose has_successors
-- is true deletes its rows, in the same transaction. Readers name queue and predecessor by "=", so
-- that InnoDB stops at their end and walks over no dead rows of others.
create table if not exists rowq.successor (
    queue_id       int not null comment 'Queue; never reused.',
    predecessor_id bigint not null comment 'Predecessor that the message waits for now; null if it is still to be determined.',
    message_id     bigint not null comment 'Message id.',
    primary key (queue_id, predecessor_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'One row per successor and predecessor that it waits for.'
stats_persistent = 1 stats_auto_recalc = 0;

-- A row is something that has to be looked at again, because another transaction held what was
-- looked at, or because there was too much of it. With a group_key it is a slot that its last owner
-- could not pass on, or whose group rests; is_hint says that there is no slot yet: the group's
-- limit was raised, and there may be one to take. With a message_id it is a blocked message that
-- waits for nothing any more, perhaps. With a predecessor_id it is a message that has ended, of
-- which not all successors were freed; is_hint says that it is dead. With the same id as both it is
-- a message that has ended, and whose row another transaction had locked; with none of the three it
-- says that dedup has keys to delete. maintain looks at what is due, and so does a dequeue that
-- finds nothing. A queue ends in two sentinel rows (deferred_id 0), as in delayed, and readers
-- select is_hint, as those of delayed do attempt.
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

-- A row says when a dequeue of a queue with a rate_limit has begun deliveries, and how many. It
-- stays until maintain finds it older than rate_seconds. A queue begins with two sentinel rows
-- (claim_id -2 and -1), as in claim. So readers say "claim_id > 0", or name the moment from which
-- on they read.
create table if not exists rowq.started (
    queue_id   int not null comment 'Queue; never reused.',
    started_at datetime(6) not null comment 'Time of the dequeue.',
    claim_id   bigint not null comment 'The claim that holds the lease; pass it to the finishing routines.',
    messages   int not null comment 'Messages leased by the dequeue.',
    primary key (queue_id, started_at, claim_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Deliveries within rate_seconds of queues with a rate_limit: one row per dequeue.'
stats_persistent = 1 stats_auto_recalc = 0;

-- A row says when maintain looks whether a message has expired, and where it is if it is ready
-- then. Who adds a message adds one, and so does who makes it ready under a new number or gives it
-- back: maintain can forget a row whose message it does not find. A row stays until its moment,
-- also where the message has ended before. So that is no later than a day, and maintain puts it off
-- for another day until the message expires. A queue ends in two sentinel rows (expiry_id 0), as in
-- delayed, and readers select message_id, which is outside of the key.
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

-- A row says how a message has ended, in a queue with result_seconds. It stays until maintain finds
-- it older than these, or the message, which is dead, is reset. Rows are locked by the primary key
-- only; maintain reads the other index without a lock. A queue ends there in two sentinel rows
-- (message_id below 1), as in delayed, and readers of that index select state, which is outside of
-- it.
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

-- A row is an attempt that has ended, in a queue with history_days. It stays until maintain finds
-- it older than these. The table has no partition a day, unlike the archive: every call that
-- finishes messages of such a queue writes here, in the caller's transaction perhaps, and a
-- statement that adds or drops a partition waits for all open ones, with whoever comes later
-- waiting behind it. A queue ends in two sentinel rows (message_id 0), as in delayed, and readers
-- by the primary key select outcome, which is outside of it.
create table if not exists rowq.history (
    queue_id    int not null comment 'Queue; never reused.',
    ended_at    datetime(6) not null comment 'End of the attempt.',
    message_id  bigint not null comment 'Message id.',
    attempt     smallint not null comment 'Number of leases so far.',
    claim_id    bigint not null comment 'Claim that held the message.',
    worker_name varchar(200) null comment 'Name of the worker that held the lease.',
    leased_at   datetime(6) not null comment 'Time of the dequeue.',
    outcome     varchar(20) not null comment 'completed, retrying, dead, released, lease_expired or cancelled.',
    error       varchar(2000) null comment 'Error reported by the worker, or that the lease expired; else null.',
    primary key (queue_id, ended_at, message_id, claim_id),
    key history_message_ix (queue_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Attempts that have ended, kept for the queue''s history_days.'
stats_persistent = 1 stats_auto_recalc = 0;

-- A row is a batch of finished messages of a queue that keeps an archive, as a JSON array like that
-- of a claim. It stays until the archive routine has moved the messages. A queue begins with two
-- sentinel rows (finish_id -2 and -1), as in claim. So readers say "finish_id > 0".
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

-- A row is a finished message. There is one partition a day (pYYYYMMDD, UTC), which is dropped when
-- no queue needs it. The last partition takes every later day, so that a row always finds its
-- place; maintain splits days off it.
create table if not exists rowq.archive (
    queue_id     int not null comment 'Queue; never reused.',
    finished_at  datetime(6) not null comment 'Time at which the message was completed, cancelled, expired or declared dead.',
    message_id   bigint not null comment 'Message id.',
    lane         smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 is a table lane.',
    attempt      smallint not null comment 'Number of leases so far.',
    enqueued_at  datetime(6) not null comment 'Time of the enqueue.',
    state        varchar(20) not null comment 'completed, cancelled or expired.',
    message_type varchar(200) null comment 'Label set by the producer.',
    dedup_key    varbinary(800) null comment 'Dedup key set by the producer.',
    headers      json null comment 'Headers set by the producer.',
    body         longtext null comment 'Text body, or null.',
    body_binary  longblob null comment 'Binary body, or null.',
    group_key    varbinary(800) null comment 'Group key set by the producer.',
    primary key (queue_id, finished_at, message_id),
    key archive_message_ix (queue_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Finished messages, kept for the queue''s archive_days.'
partition by range columns (finished_at) (
    partition plater values less than (maxvalue)
);

-- A row is a schedule: maintain adds its message to the queue in the transaction that moves
-- next_run_at on. next_run_at is null while it is paused, and after its last tick. A queue has few
-- schedules, so the due ones are found by reading them all.
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
    next_run_at      datetime(6) null comment 'Next run; null if the schedule is paused or has ended.',
    last_run_at      datetime(6) null comment 'Time of the last run, or null.',
    last_message_id  bigint null comment 'Message of the last run, or null.',
    last_error       varchar(2000) null comment 'Last error, or null.',
    primary key (queue_id, schedule_name),
    constraint schedule_cron_ck check ((cron is null) <> (interval_seconds is null)),
    constraint schedule_missed_ck check (missed in ('skip', 'once', 'all'))
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Schedules. maintain enqueues their messages when they are due.'
row_format = dynamic stats_persistent = 1 stats_auto_recalc = 0;

-- A row says that a queue gets what is published under the topics that a pattern matches. Where a
-- pattern has no "*", a topic that begins with literal_prefix needs no other look. Bindings are few
-- and seldom change, and a producer locks none of them. Whoever binds a queue, or unbinds it, holds
-- its row in queue_lock, shared.
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

-- A row is a worker process that has reported. It is deleted when the worker ends; one that was
-- killed is deleted an hour after its last report, by the report of another worker of the queue.
-- The rates are those between the last two reports.
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
