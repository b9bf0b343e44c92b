// Generated from sql/contract.toml by make generate. Do not edit.

/**
 * What routines are given. Of an array the driver makes an array of PostgreSQL, so an array that is
 * to be JSON is handed over as a string: JSON.stringify(messages).
 */
export interface Parameters {
    /** Name of the queue: 1 to 100 characters, no control characters. Case matters. */
    queue_name: string;
    /** Length of the lease: 1 to 86400. */
    lease_seconds: number;
    /** How often a message may be leased before it is dead: 1 to 10000. */
    max_attempts: number;
    /** Delay before the second attempt: 0 to 86400. */
    backoff_base_seconds: number;
    /** Each further delay is this many times the last: 1 to 10. */
    backoff_factor: number;
    /** No delay is longer than this: 0 to 31536000. */
    backoff_cap_seconds: number;
    /** A delay is shortened by a random share of up to this: 0 to 1. */
    backoff_jitter: number;
    /**
     * Days that finished messages are kept in the archive: 0 to 36500; 0 deletes them when they
     * finish.
     */
    archive_days: number;
    /**
     * Longest body that the queue takes: characters of a text, bytes of a binary body, 1 to
     * 33554432; 1048576 unless set.
     */
    max_body_length: number;
    /**
     * Messages of one group that may be ready, leased or waiting for a retry at once: 1 to 100; 1
     * unless set. With more than one, their order is not kept.
     */
    group_limit: number;
    /**
     * What a dead message does to its group: continue (unless set) lets the next one pass, hold
     * keeps the group waiting until the dead one is reset, cancelled or purged.
     */
    group_after_dead: string;
    /**
     * Rest of a group between the end of one message and the next one: 0 to 86400; 0 unless set.
     * Maintain ends it.
     */
    group_pause_seconds: number;
    /**
     * Most messages of the queue that are leased at a time: 0 to 100000; 0, as unless set, is no
     * limit. Every dequeue counts them: keep it below some 10000.
     */
    max_leased: number;
    /**
     * Most deliveries of the queue that begin within rate_seconds, further attempts too: 0 to
     * 100000; 0, as unless set, is no limit. Every dequeue counts them: keep it below some 10000,
     * by shorter rate_seconds.
     */
    rate_limit: number;
    /** The time that rate_limit is about: 0.1 to 86400; 1 unless set. */
    rate_seconds: number;
    /**
     * How long it is kept how a message has ended, with its result: 0 to 31536000; 0, as unless
     * set, keeps nothing.
     */
    result_seconds: number;
    /**
     * Days that it is kept, for get_history, who had a message, when, and how that ended: 0 to
     * 36500; 0, as unless set, keeps nothing. Maintain and purge_archive delete what is older.
     */
    history_days: number;
    /** Drop the queue with everything in it. */
    force: boolean;
    /** A topic, in which a word may be * (any one word) and the last one # (any words, or none). */
    topic_pattern: string;
    /** Remove dead messages too. */
    include_dead: boolean;
    /**
     * Most messages to touch or return: 1 to 10000 (peek: 1 to 1000). Null, where allowed, means
     * all.
     */
    max_messages: number;
    /** Text body, no longer than the queue's max_body_length. */
    body: string;
    /** Binary body. A message has a text body, a binary body or none, never both. */
    body_binary: Uint8Array;
    /** Free label for the consumer, up to 200 characters. */
    message_type: string;
    /**
     * JSON object of the caller's own: up to 65536 characters, nested at most 20 deep (a value
     * inside counts: {"a": 1} is 2 deep), its numbers of up to 100 digits and with exponents from
     * -200 to 200. So every engine holds them and every language's JSON reader takes them.
     * PostgreSQL stores numbers without exponents, and takes up to 300 digits on either side of the
     * point. MySQL stores numbers that fit into no 64 bits as doubles; in enqueue_batch it rounds
     * to a double what has too many digits behind the point or too small an exponent, and takes
     * JSON with a number that no double holds for none.
     */
    headers: string | { readonly [name: string]: unknown };
    /** 0 to 9; 0 is delivered first. */
    priority: number;
    /**
     * Deliver no sooner than this many seconds from now: 0 to 315360000 (ten years). Not together
     * with run_at.
     */
    delay_seconds: number;
    /** Deliver no sooner than this moment; a moment in the past means now. */
    run_at: Date | string;
    /**
     * While an unfinished message of the queue has this key, enqueue returns that message. Up to
     * 200 characters; enqueue refuses keys that begin with schedule:, which are for schedules.
     */
    dedup_key: string;
    /**
     * Messages of one key go out first in, first out, and no more than group_limit of them are in
     * work at a time; other messages pass. Up to 200 characters, compared as bytes.
     */
    group_key: string;
    /**
     * Messages of the queue that must end before this one is delivered: at most 10000, all of them
     * there already. One that rowq does not know any more has ended.
     */
    predecessor_ids: readonly (string | number | bigint)[];
    /**
     * What a dead predecessor does: hold (unless set) keeps the message waiting until the dead one
     * is reset, cancelled or purged; continue counts it as ended; fail makes the message dead, too;
     * once that one is reset it waits for none any more.
     */
    on_predecessor_dead: string;
    /**
     * Withdraw the message if it has not ended so many seconds after it was enqueued: 0.001 to
     * 315360000 (ten years). Maintain does it; a worker that holds the message then may finish it.
     * What waits for the message, or behind it in its group, goes on.
     */
    expire_seconds: number;
    /**
     * JSON array of at most 10000 objects with enqueue's parameters as keys, and body_base64 for a
     * binary body. A body that is not a string is stored as JSON text. predecessor_positions are
     * places in the array, from 1, of messages before the one that waits for them; predecessor_ids
     * and these add up. In publish_batch each object has publish's parameters as keys, its topic
     * among them, and no predecessors.
     */
    messages: string | { readonly [name: string]: unknown };
    /**
     * Words of letters (A to Z, a to z), digits, _ and -, with dots between them: up to 200
     * characters. Case matters.
     */
    topic: string;
    /**
     * Most messages to take in this call: 1 to 1000 (housekeeping: 1 to 10000). Reap takes a claim
     * back as a whole, and ends with the claim that reaches this: it may take up to 999 messages
     * more.
     */
    batch_size: number;
    /** Who asks, for people to read: up to 200 characters. */
    worker_name: string;
    /** Longest time to wait: 0 to 3600. */
    wait_seconds: number;
    /** The claim that dequeue returned; the fencing token. */
    claim_id: string | number | bigint;
    /**
     * Messages; at most 10000. For the finishing routines null means every message the claim still
     * holds.
     */
    message_ids: readonly (string | number | bigint)[];
    /**
     * JSON array with a value for each of message_ids, in their order, of up to 1048576 characters
     * each; what headers say about depth and numbers holds for them, too. Null in it is no result.
     * Without message_ids the claim must hold one message. The queue must have result_seconds.
     */
    results: string | { readonly [name: string]: unknown };
    /** What went wrong; the first 2000 characters are kept. */
    error: string;
    /**
     * How far the work is, in the worker's own words, for get_message; the first 2000 characters
     * are kept. Null leaves what is there.
     */
    progress: string;
    /**
     * Whether messages that a worker holds are noted to be withdrawn: the worker is told by its
     * next extend_lease, and what would give such a message back or declare it dead withdraws it
     * instead. Completing it still completes it. The outcome leased means then that another session
     * is at work on the claim, or has taken the message and not committed: ask again.
     */
    include_leased: boolean;
    /**
     * A header of the first level: 1 to 200 printable ASCII characters, no quotation mark or
     * backslash among them, and no hyphen at the start. Only together with header_value.
     */
    header_name: string;
    /**
     * What this header is: the text of a string, or a whole number, true or false as JSON writes
     * them. Any other value equals none. Compared as bytes.
     */
    header_value: string;
    /** Only messages that were handed over before this moment. */
    enqueued_before: Date | string;
    /** Continue a listing after this message. */
    after_message_id: string | number | bigint;
    /** Only messages that failed for good before this moment. */
    died_before: Date | string;
    /** Name of a schedule, one of its queue: 1 to 100 characters, no control characters. */
    schedule_name: string;
    /**
     * Minute, hour, day, month and weekday, as in a crontab: *, values, ranges, steps and lists of
     * these, months and weekdays by number (0 and 7 are Sunday) or English name; or @hourly,
     * @daily, @midnight, @weekly, @monthly, @yearly, @annually. Where both a day and a weekday are
     * given, either is enough. A time that the clocks skip fires when the gap ends, one that they
     * show twice fires once; where the minute or the hour begins with *, each hour that there is
     * counts.
     */
    cron: string;
    /** Seconds between ticks, counted from starts_at: 1 to 315360000. */
    interval_seconds: number;
    /** Whose clocks cron means: UTC, or a name that the server knows, such as Europe/Berlin. */
    time_zone: string;
    /**
     * What becomes of ticks found more than 60 seconds late: once, one message for all of them;
     * all, a message each, oldest first; skip, none.
     */
    missed: string;
    /**
     * Whether a tick makes a message while that of an earlier tick has not ended. False gives its
     * messages the dedup key schedule:<schedule_name>.
     */
    overlap: boolean;
    /**
     * No tick before this moment, from which intervals are counted; null means now. From the year
     * 2000 to 2100.
     */
    starts_at: Date | string;
    /** No tick after this moment; null means for ever. From the year 2000 to 2100. */
    ends_at: Date | string;
    /** True stops the schedule, false lets it go on. */
    is_paused: boolean;
    /** Ticks after this moment; null means now. From the year 2000 to 2100. */
    after: Date | string;
    /** Most ticks to return: 1 to 1000. */
    max_ticks: number;
    /**
     * Identifies a worker process from its start to its end: 1 to 64 letters (A to Z, a to z),
     * digits, and any of - _ . :
     */
    worker_id: string;
    /** Where the worker runs, for people to read: up to 200 characters. */
    host_name: string;
    /** What the worker runs, for people to read: up to 200 characters. */
    worker_version: string;
    /** How many handlers the worker runs at a time: 1 to 100000. */
    threads: number;
    /** How many messages the worker has completed since its start: 0 to 9007199254740992. */
    completed: string | number | bigint;
    /**
     * How many attempts have failed in the worker since its start, dead or to be retried: 0 to
     * 9007199254740992.
     */
    failed: string | number | bigint;
    /** Whether the worker ends: then it is not listed any more. */
    is_ended: boolean;
    /**
     * Counting stops here, so that a look at a huge queue stays cheap; a count equal to it means at
     * least so many. 1 to 100000000.
     */
    max_count: number;
    /** A message. */
    message_id: string | number | bigint;
    /** The row of get_result as JSON object; null as the argument. */
    answer: string | { readonly [name: string]: unknown };
    /**
     * Go backwards through a listing, the newest messages first, from the one before this:
     * 9223372036854775807 begins with the newest of all.
     */
    before_message_id: string | number | bigint;
    /** Continue a listing after this claim. */
    after_claim_id: string | number | bigint;
    /** Most claims to return: 1 to 10000. */
    max_claims: number;
    /** Continue a listing after the message that is due then, whose id is after_message_id. */
    after_due_at: Date | string;
}

/** What routines return; 64 bits come as a string, because a number would lose digits. */
export interface Columns {
    /** Name of the queue. */
    queue_name: string;
    /** What was done; the routine lists the possible words. */
    outcome: string;
    /** What of the topics the queue gets. */
    topic_pattern: string;
    /** Messages removed. */
    removed: string;
    /** The message. */
    message_id: string;
    /** Place in the JSON array, from 1. */
    position: number;
    /** The claim that holds the lease; pass it to the finishing routines. */
    claim_id: string;
    /** How many times the message has been leased. */
    attempt: number;
    /** The producer's label. */
    message_type: string;
    /** The producer's headers. */
    headers: unknown;
    /** Text body, or null. */
    body: string;
    /** Binary body, or null. */
    body_binary: Uint8Array;
    /** When the producer handed it over. */
    enqueued_at: Date;
    /** When the lease runs out. */
    lease_until: Date;
    /** What went wrong last, or null. */
    last_error: string;
    /**
     * JSON array of the rows dequeue_fast returns; body_binary is base64. Null when the time ran
     * out.
     */
    messages: unknown;
    /** 0 to 9; 0 is delivered first. */
    priority: number;
    /** When a delayed message becomes ready. */
    due_at: Date;
    /**
     * Messages of the claim that cancel has noted: stop, and give them back to have them withdrawn;
     * null where there is none.
     */
    cancel_ids: string[];
    /** Messages withdrawn. */
    cancelled: number;
    /**
     * The last message looked at, after which the next call goes on; null when that was the last
     * one there was.
     */
    after_message_id: string;
    /** Name of the schedule. */
    schedule_name: string;
    /** The next tick; null while the schedule is paused, and after its last one. */
    next_run_at: Date;
    /** Its times as in a crontab, or null. */
    cron: string;
    /** Seconds between its ticks, or null. */
    interval_seconds: number;
    /** Whose clocks cron means. */
    time_zone: string;
    /** It is stopped: a queue delivers nothing, a schedule makes no message. */
    is_paused: boolean;
    /** When it last made a message, or null. */
    last_run_at: Date;
    /** The message that it made then, or null. */
    last_message_id: string;
    /** What becomes of late ticks: skip, once or all. */
    missed: string;
    /** Whether a tick makes a message while that of an earlier one has not ended. */
    overlap: boolean;
    /** No tick comes before this moment; intervals are counted from it. */
    starts_at: Date;
    /** No tick comes after this moment, or null. */
    ends_at: Date;
    /** Leases before the message is dead; null in the archive. */
    max_attempts: number;
    /** The producer's group key. */
    group_key: string;
    /** A moment when the schedule would run. */
    tick: Date;
    /**
     * False: another session is doing this queue's housekeeping right now, or is elected for it.
     */
    elected: boolean;
    /** Delayed messages made ready. */
    promoted: number;
    /** Messages taken back from expired claims. */
    reaped: number;
    /** Reaped messages that had no attempt left. */
    died: number;
    /** Finished messages moved to the archive. */
    archived: number;
    /**
     * What was deleted row by row: messages from the archive, attempts older than history_days,
     * and, by maintain, results older than result_seconds. Call again at once while it is
     * batch_size or more.
     */
    purged: number;
    /** Archive partitions dropped whole. */
    partitions_dropped: number;
    /** Messages withdrawn because their expire_seconds had passed. */
    expired: number;
    /** Messages waiting for a worker. */
    ready: string;
    /** Messages waiting for their time. */
    delayed: string;
    /** Messages in workers' hands. */
    leased: string;
    /** Messages that failed for good. */
    dead: string;
    /** Messages waiting behind others of their groups, or for predecessors. */
    blocked: string;
    /** Age of the oldest message at the head of a lane, or null. */
    oldest_ready_seconds: number;
    /** Setting: default lease. */
    lease_seconds: number;
    /** Setting: delay before the second attempt. */
    backoff_base_seconds: number;
    /** Setting: growth of the delay. */
    backoff_factor: number;
    /** Setting: longest delay. */
    backoff_cap_seconds: number;
    /** Setting: random share taken off a delay. */
    backoff_jitter: number;
    /** Setting: days in the archive. */
    archive_days: number;
    /** Setting: longest body. */
    max_body_length: number;
    /** Setting: messages of one group in work at once. */
    group_limit: number;
    /** Setting: continue or hold. */
    group_after_dead: string;
    /** Setting: rest of a group between two messages. */
    group_pause_seconds: number;
    /** Setting: most messages leased at a time; 0 is no limit. */
    max_leased: number;
    /** Setting: most deliveries begun within rate_seconds; 0 is no limit. */
    rate_limit: number;
    /** Setting: the time that rate_limit is about. */
    rate_seconds: number;
    /** Setting: how long results are kept; 0 is not at all. */
    result_seconds: number;
    /** Setting: days that ended attempts are kept; 0 is not at all. */
    history_days: number;
    /**
     * ready, delayed, blocked (behind others of its group, or by a predecessor), leased, dead, or
     * once finished: completed, cancelled, expired.
     */
    state: string;
    /** The producer's dedup key. */
    dedup_key: string;
    /** Who holds the lease, or has held it. */
    worker_name: string;
    /** When it was completed, cancelled, expired or declared dead. */
    finished_at: Date;
    /**
     * Of a blocked message, the predecessor that it waits for, or the one before it that waits in
     * the same group; null for the next one of its group.
     */
    waits_for: string;
    /** When maintain withdraws the message unless it has ended, or null. */
    expires_at: Date;
    /** How far the work is, as the worker said last. */
    progress: string;
    /** What complete was given for the message, or null. */
    result: unknown;
    /** The row of get_result as JSON object; null for a message that rowq does not know. */
    answer: unknown;
    /** When the dequeue leased the message. */
    leased_at: Date;
    /** When the attempt ended; null, as the outcome is then, for the present lease. */
    ended_at: Date;
    /** What the worker said went wrong, or that the lease expired; else null. */
    error: string;
    /** When it failed for good. */
    died_at: Date;
    /** Messages that the claim still holds. */
    message_count: number;
    /**
     * Seconds until the lease runs out; below 0 once it has, until maintain takes the messages
     * back.
     */
    lease_left_seconds: number;
    /** The worker process. */
    worker_id: string;
    /** Where the worker runs, or null. */
    host_name: string;
    /** What the worker runs, or null. */
    worker_version: string;
    /** How many handlers the worker runs at a time. */
    threads: number;
    /** When the worker reported first. */
    started_at: Date;
    /** When the worker reported last. */
    last_seen_at: Date;
    /** Seconds since the worker reported last. */
    last_seen_seconds: number;
    /** Messages that the worker has completed since its start. */
    completed: string;
    /** Attempts that have failed in the worker since its start. */
    failed: string;
    /** Messages completed a second, between the worker's last two reports. */
    completed_per_second: number;
    /** Attempts failed a second, between the worker's last two reports. */
    failed_per_second: number;
    /** What was looked at. */
    check_name: string;
    /** ok, warning or critical. */
    status: string;
    /** The measured figure. */
    value: number;
    /** Who or what, and what to do. */
    detail: string;
    /** Version of the installed routines. */
    rowq_version: string;
    /** Number of the newest installed migration. */
    schema_version: number;
    /** Engine name and version. */
    engine: string;
    /** The channel of the queue's notifications, whose payload is the queue's name. */
    channel: string;
}

type Given<Required extends keyof Parameters, Optional extends keyof Parameters = never> = {
    [Name in Required]: Parameters[Name];
} & { [Name in Optional]?: Parameters[Name] | null };
/** The columns that are always there, and those that may be null. */
type Row<Known extends keyof Columns, Nullable extends keyof Columns = never> = {
    [Name in Known]: Columns[Name];
} & { [Name in Nullable]: Columns[Name] | null };

export interface Routines {
    /** Create a queue; an existing queue of that name is left as it is. */
    create_queue: {
        given: Given<
            "queue_name",
            "lease_seconds" | "max_attempts" | "backoff_base_seconds" | "backoff_factor" |
            "backoff_cap_seconds" | "backoff_jitter" | "archive_days" | "max_body_length" |
            "group_limit" | "group_after_dead" | "group_pause_seconds" | "max_leased" | "rate_limit"
            | "rate_seconds" | "result_seconds" | "history_days"
        >;
        row: Row<"queue_name" | "outcome"> & { outcome: "created" | "exists" };
    };
    /** Change settings of a queue; null leaves a setting as it is. */
    alter_queue: {
        given: Given<
            "queue_name",
            "lease_seconds" | "max_attempts" | "backoff_base_seconds" | "backoff_factor" |
            "backoff_cap_seconds" | "backoff_jitter" | "archive_days" | "max_body_length" |
            "group_limit" | "group_after_dead" | "group_pause_seconds" | "max_leased" | "rate_limit"
            | "rate_seconds" | "result_seconds" | "history_days"
        >;
        row: Row<"queue_name" | "outcome"> & { outcome: "altered" };
    };
    /** Remove an empty queue, or with force a queue and everything in it, archive included. */
    drop_queue: {
        given: Given<"queue_name", "force">;
        row: Row<"queue_name" | "outcome"> & { outcome: "dropped" };
    };
    /** Stop delivery; enqueue and the finishing routines go on. */
    pause_queue: {
        given: Given<"queue_name">;
        row: Row<"queue_name" | "outcome"> & { outcome: "paused" };
    };
    /** Start delivery again. */
    resume_queue: {
        given: Given<"queue_name">;
        row: Row<"queue_name" | "outcome"> & { outcome: "resumed" };
    };
    /** Let a queue get what is published under the topics that a pattern matches. */
    bind_topic: {
        given: Given<"queue_name" | "topic_pattern">;
        row: Row<"queue_name" | "outcome", "topic_pattern"> & { outcome: "bound" | "exists" };
    };
    /** Take a queue's pattern away; what it has got stays. */
    unbind_topic: {
        given: Given<"queue_name" | "topic_pattern">;
        row: Row<"queue_name" | "outcome", "topic_pattern"> & { outcome: "unbound" | "not_bound" };
    };
    /** Delete waiting messages: ready, delayed, blocked; leased ones stay with their workers. */
    purge_queue: {
        given: Given<"queue_name", "include_dead" | "max_messages">;
        row: Row<never, "removed">;
    };
    /** Hand over one message. */
    enqueue: {
        given: Given<
            "queue_name",
            "body" | "body_binary" | "message_type" | "headers" | "priority" | "delay_seconds" |
            "run_at" | "dedup_key" | "max_attempts" | "group_key" | "predecessor_ids" |
            "on_predecessor_dead" | "expire_seconds"
        >;
        row: Row<"message_id" | "outcome"> & { outcome: "enqueued" | "duplicate" };
    };
    /** Hand over many messages in one call: all of them or, on an error, none. */
    enqueue_batch: {
        given: Given<"queue_name" | "messages">;
        row: Row<"position" | "message_id" | "outcome"> & { outcome: "enqueued" | "duplicate" };
    };
    /**
     * Hand over one message to each queue that is bound to a topic, in the order of their names; to
     * none where none is. Without a message_type it is the topic.
     */
    publish: {
        given: Given<
            "topic",
            "body" | "body_binary" | "message_type" | "headers" | "priority" | "delay_seconds" |
            "run_at" | "dedup_key" | "max_attempts" | "group_key" | "expire_seconds"
        >;
        row: Row<"queue_name" | "message_id" | "outcome"> & { outcome: "enqueued" | "duplicate" };
    };
    /**
     * Do what publish does with many messages in one call, queue by queue: all of them or, on an
     * error, none.
     */
    publish_batch: {
        given: Given<"messages">;
        row: Row<
            "position" | "queue_name" | "message_id" | "outcome"
        > & { outcome: "enqueued" | "duplicate" };
    };
    /**
     * Lease up to batch_size ready messages to one new claim, passing over rows that another
     * session holds.
     */
    dequeue_fast: {
        given: Given<"queue_name", "batch_size" | "worker_name" | "lease_seconds">;
        row: Row<
            "claim_id" | "message_id" | "attempt",
            "message_type" | "headers" | "body" | "body_binary" | "enqueued_at" | "lease_until" |
            "last_error"
        >;
    };
    /**
     * Do what dequeue_fast does, but wait until something is ready or the time is up; return fewer
     * messages where they are long.
     */
    dequeue_wait: {
        given: Given<"queue_name", "batch_size" | "worker_name" | "lease_seconds" | "wait_seconds">;
        row: Row<never, "messages">;
    };
    /** Show the next ready messages without leasing them. */
    peek: {
        given: Given<"queue_name", "max_messages">;
        row: Row<
            "message_id" | "attempt",
            "priority" | "message_type" | "headers" | "body" | "body_binary" | "enqueued_at" |
            "last_error"
        >;
    };
    /** Finish messages: they are gone, or in the archive, and never delivered again. */
    complete: {
        given: Given<"queue_name" | "claim_id", "message_ids" | "results">;
        row: Row<"message_id" | "outcome"> & { outcome: "completed" | "stale" };
    };
    /**
     * Give messages back for another attempt after a delay, the queue's backoff unless
     * delay_seconds is given; without an attempt left they are dead.
     */
    retry_later: {
        given: Given<"queue_name" | "claim_id", "message_ids" | "delay_seconds" | "error">;
        row: Row<
            "message_id" | "outcome",
            "due_at"
        > & { outcome: "retrying" | "dead" | "cancelled" | "stale" };
    };
    /** Declare messages dead without another attempt. */
    fail_now: {
        given: Given<"queue_name" | "claim_id", "message_ids" | "error">;
        row: Row<"message_id" | "outcome"> & { outcome: "dead" | "cancelled" | "stale" };
    };
    /** Give messages back to the front of their priority without spending the attempt. */
    release: {
        given: Given<"queue_name" | "claim_id", "message_ids">;
        row: Row<"message_id" | "outcome"> & { outcome: "released" | "cancelled" | "stale" };
    };
    /**
     * Heartbeat: hold all messages of a claim for lease_seconds from now; a lease is never
     * shortened.
     */
    extend_lease: {
        given: Given<"queue_name" | "claim_id", "lease_seconds" | "progress">;
        row: Row<"claim_id", "lease_until" | "cancel_ids">;
    };
    /** Withdraw messages that no worker holds, dead ones too. */
    cancel: {
        given: Given<"queue_name" | "message_ids", "include_leased">;
        row: Row<
            "message_id" | "outcome"
        > & { outcome: "cancelled" | "requested" | "leased" | "not_found" };
    };
    /**
     * Look at up to max_messages messages, in the order of their ids, and withdraw those that match
     * every filter given and that no worker holds, dead ones too. At least one filter is required.
     */
    cancel_many: {
        given: Given<
            "queue_name",
            "message_type" | "group_key" | "header_name" | "header_value" | "enqueued_before" |
            "after_message_id" | "max_messages"
        >;
        row: Row<never, "cancelled" | "after_message_id">;
    };
    /**
     * Make dead messages ready again, at the tail of their priority, with fresh attempts; null
     * takes the oldest max_messages.
     */
    reset: {
        given: Given<"queue_name", "message_ids" | "max_messages" | "message_type" | "died_before">;
        row: Row<"message_id" | "outcome"> & { outcome: "reset" | "duplicate" | "not_found" };
    };
    /**
     * Delete dead messages for good, the archive keeps none of them; null takes the oldest
     * max_messages.
     */
    discard_dead: {
        given: Given<"queue_name", "message_ids" | "max_messages" | "message_type" | "died_before">;
        row: Row<never, "removed">;
    };
    /**
     * Let maintain enqueue a message at the times of a cron expression, or every so many seconds;
     * an existing schedule of that name is left as it is.
     */
    create_schedule: {
        given: Given<
            "queue_name" | "schedule_name",
            "cron" | "interval_seconds" | "time_zone" | "body" | "body_binary" | "message_type" |
            "headers" | "priority" | "max_attempts" | "group_key" | "missed" | "overlap" |
            "starts_at" | "ends_at"
        >;
        row: Row<"outcome", "schedule_name" | "next_run_at"> & { outcome: "created" | "exists" };
    };
    /**
     * Change a schedule, pause it or let it go on; null leaves a setting as it is. It counts anew
     * from now: what it has missed is not made up for.
     */
    alter_schedule: {
        given: Given<
            "queue_name" | "schedule_name",
            "cron" | "interval_seconds" | "time_zone" | "body" | "body_binary" | "message_type" |
            "headers" | "priority" | "max_attempts" | "group_key" | "missed" | "overlap" |
            "starts_at" | "ends_at" | "is_paused"
        >;
        row: Row<"outcome", "schedule_name" | "next_run_at"> & { outcome: "altered" };
    };
    /** Remove a schedule; the messages that it made stay. */
    drop_schedule: {
        given: Given<"queue_name" | "schedule_name">;
        row: Row<"outcome", "schedule_name"> & { outcome: "dropped" };
    };
    /** Enqueue the message of a schedule now, paused or not; its next tick stays as it is. */
    run_schedule: {
        given: Given<"queue_name" | "schedule_name">;
        row: Row<"message_id" | "outcome"> & { outcome: "enqueued" | "duplicate" };
    };
    /** The schedules of one queue, or of all, without their bodies and headers. */
    list_schedules: {
        given: Given<never, "queue_name">;
        row: Row<
            "queue_name",
            "schedule_name" | "cron" | "interval_seconds" | "time_zone" | "is_paused" |
            "next_run_at" | "last_run_at" | "last_message_id" | "last_error" | "missed" | "overlap"
            | "starts_at" | "ends_at" | "message_type" | "priority" | "max_attempts" | "group_key"
        >;
    };
    /**
     * When a schedule with these times would run: a look before it is created. An interval counts
     * from after.
     */
    next_ticks: {
        given: Given<never, "cron" | "interval_seconds" | "time_zone" | "after" | "max_ticks">;
        row: Row<never, "tick">;
    };
    /**
     * All housekeeping of one queue, or of every queue: schedules, promote, reap, expiry, floors,
     * archive, results, history. Call it about once a second.
     */
    maintain: {
        given: Given<never, "queue_name" | "batch_size">;
        row: Row<
            "queue_name",
            "elected" | "promoted" | "reaped" | "died" | "archived" | "purged" |
            "partitions_dropped" | "expired"
        >;
    };
    /** Take unfinished messages back from claims whose lease ran out. */
    reap: {
        given: Given<"queue_name", "batch_size">;
        row: Row<never, "reaped" | "died">;
    };
    /** Make delayed messages ready whose time has come. */
    promote: {
        given: Given<"queue_name", "batch_size">;
        row: Row<never, "promoted">;
    };
    /** Move finished messages of a queue with archive_days above 0 to the archive. */
    archive: {
        given: Given<"queue_name", "batch_size">;
        row: Row<never, "archived">;
    };
    /**
     * Delete archived messages older than the queue's archive_days and attempts older than its
     * history_days, and drop partitions that no queue needs.
     */
    purge_archive: {
        given: Given<"queue_name", "batch_size">;
        row: Row<never, "purged" | "partitions_dropped">;
    };
    /**
     * Report that a worker runs, and what it has done; call it every ten seconds or so, in a
     * transaction of its own.
     */
    report_worker: {
        given: Given<
            "queue_name" | "worker_id",
            "worker_name" | "host_name" | "worker_version" | "threads" | "completed" | "failed" |
            "is_ended"
        >;
        row: Row<"queue_name" | "outcome"> & { outcome: "reported" | "ended" };
    };
    /** Counts, age and settings of one queue or all. */
    queue_stats: {
        given: Given<never, "queue_name" | "max_count">;
        row: Row<
            never,
            "queue_name" | "is_paused" | "ready" | "delayed" | "leased" | "dead" | "blocked" |
            "oldest_ready_seconds" | "lease_seconds" | "max_attempts" | "backoff_base_seconds" |
            "backoff_factor" | "backoff_cap_seconds" | "backoff_jitter" | "archive_days" |
            "max_body_length" | "group_limit" | "group_after_dead" | "group_pause_seconds" |
            "max_leased" | "rate_limit" | "rate_seconds" | "result_seconds" | "history_days"
        >;
    };
    /** Where a message is and everything about it; no row when rowq does not know it. */
    get_message: {
        given: Given<"queue_name" | "message_id">;
        row: Row<
            never,
            "message_id" | "state" | "priority" | "attempt" | "max_attempts" | "message_type" |
            "headers" | "body" | "body_binary" | "dedup_key" | "enqueued_at" | "due_at" | "claim_id"
            | "worker_name" | "lease_until" | "finished_at" | "last_error" | "group_key" |
            "waits_for" | "expires_at" | "progress"
        >;
    };
    /** Find the unfinished message that has a dedup key, and return what get_message does. */
    find_message: {
        given: Given<"queue_name" | "dedup_key">;
        row: Row<
            never,
            "message_id" | "state" | "priority" | "attempt" | "max_attempts" | "message_type" |
            "headers" | "body" | "body_binary" | "dedup_key" | "enqueued_at" | "due_at" | "claim_id"
            | "worker_name" | "lease_until" | "finished_at" | "last_error" | "group_key" |
            "waits_for" | "expires_at" | "progress"
        >;
    };
    /**
     * How a message has ended, and its result; of one that has not ended its state; no row when
     * rowq does not know it.
     */
    get_result: {
        given: Given<"queue_name" | "message_id">;
        row: Row<never, "message_id" | "state" | "finished_at" | "result" | "last_error">;
    };
    /**
     * Do what get_result does, but wait until the message has ended or the time is up; the queue
     * must keep results.
     */
    wait_for_result: {
        given: Given<"queue_name" | "message_id", "wait_seconds">;
        row: Row<never, "answer">;
    };
    /**
     * The attempts of a message: those that have ended within the queue's history_days, oldest
     * first, then the present lease. A lease that ran out is lease_expired, also where no attempt
     * was left; no row when rowq knows of none.
     */
    get_history: {
        given: Given<"queue_name" | "message_id">;
        row: Row<never, "attempt" | "worker_name" | "leased_at" | "ended_at" | "outcome" | "error">;
    };
    /**
     * Dead messages, without their bodies, in the order of their ids, or backwards before one; of
     * one type only, if given.
     */
    list_dead: {
        given: Given<
            "queue_name",
            "after_message_id" | "max_messages" | "before_message_id" | "message_type"
        >;
        row: Row<
            never,
            "message_id" | "priority" | "attempt" | "message_type" | "enqueued_at" | "died_at" |
            "last_error"
        >;
    };
    /** Who is at work on what: the claims of one queue or all, in the order of their ids. */
    list_claims: {
        given: Given<never, "queue_name" | "after_claim_id" | "max_claims">;
        row: Row<
            never,
            "queue_name" | "claim_id" | "worker_name" | "message_count" | "lease_until" |
            "lease_left_seconds"
        >;
    };
    /**
     * The workers of one queue, or of all, that have reported within the last hour, idle ones too.
     */
    list_workers: {
        given: Given<never, "queue_name">;
        row: Row<
            never,
            "queue_name" | "worker_id" | "worker_name" | "host_name" | "worker_version" | "threads"
            | "started_at" | "last_seen_at" | "last_seen_seconds" | "completed" | "failed" |
            "completed_per_second" | "failed_per_second"
        >;
    };
    /**
     * Messages that wait for their time, without their bodies, in the order in which they become
     * due.
     */
    list_delayed: {
        given: Given<"queue_name", "after_due_at" | "after_message_id" | "max_messages">;
        row: Row<
            never,
            "message_id" | "priority" | "attempt" | "message_type" | "due_at" | "last_error"
        >;
    };
    /** The patterns of one queue or all, in the order of the queues' names. */
    list_topics: {
        given: Given<never, "queue_name">;
        row: Row<never, "queue_name" | "topic_pattern">;
    };
    /**
     * Report what needs attention: who holds back clean-up, overdue messages, expired leases, dead
     * messages, a sequence behind its data.
     */
    health: {
        given: Given<never>;
        row: Row<never, "check_name" | "queue_name" | "status" | "value" | "detail">;
    };
    /** What is installed. */
    version: {
        given: Given<never>;
        row: Row<never, "rowq_version" | "schema_version" | "engine">;
    };
    /**
     * Have this session notified of a queue's new messages, on a channel that nobody else can name.
     */
    listen: {
        given: Given<"queue_name">;
        row: Row<
            "queue_name" | "outcome",
            "channel"
        > & { outcome: "listening" | "busy" | "unavailable" };
    };
    /** Take back one listen; while nobody listens, producers notify nobody. */
    unlisten: {
        given: Given<"queue_name">;
        row: Row<"queue_name" | "outcome"> & { outcome: "stopped" | "not_listening" };
    };
    /**
     * Elect the one session that calls maintain for a queue each second; the others may call it
     * more seldom.
     */
    elect_keeper: {
        given: Given<"queue_name">;
        row: Row<"queue_name", "elected">;
    };
}

const procedures: ReadonlySet<string> = new Set(["dequeue_wait", "wait_for_result"]);

/** A client or a pool of pg. */
export interface Database {
    query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

/** Call a routine with parameters by name and return its rows; what is left out is its default. */
export async function call<Name extends keyof Routines>(
    database: Database,
    routine: Name,
    given: Routines[Name]["given"],
): Promise<Routines[Name]["row"][]> {
    const names = Object.keys(given).map((name, place) => `p_${name} => $${place + 1}`);
    const verb = procedures.has(routine) ? "call" : "select * from";
    const text = `${verb} rowq.${routine}(${names.join(", ")})`;
    return (await database.query(text, Object.values(given))).rows as Routines[Name]["row"][];
}

/** Tell whether rowq has refused a call, with this number if one is given, such as RQ721. */
export function isRefused(error: unknown, number?: string): boolean {
    const code = (error as { code?: unknown } | null)?.code;
    return typeof code === "string" && (number ? code === number : code.startsWith("RQ"));
}
