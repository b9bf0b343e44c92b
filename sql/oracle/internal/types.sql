-- Types of the package's private subprograms. seq is a position in a lane or claim. group_key is
-- set only if the message is to join its group. is_without_slot is 1 if it had no slot.
-- is_cancelled is 1 if it was cancelled while leased. place is the position of a new message in its
-- batch, or 0. predecessor_ids and topic are null if it has none.
type t_queue is record (
    queue_id             rowq_queue.queue_id%type,
    lease_seconds        rowq_queue.lease_seconds%type,
    max_attempts         rowq_queue.max_attempts%type,
    backoff_base_seconds rowq_queue.backoff_base_seconds%type,
    backoff_factor       rowq_queue.backoff_factor%type,
    backoff_cap_seconds  rowq_queue.backoff_cap_seconds%type,
    backoff_jitter       rowq_queue.backoff_jitter%type,
    archive_days         rowq_queue.archive_days%type,
    max_body_length      rowq_queue.max_body_length%type,
    group_limit          rowq_queue.group_limit%type,
    group_after_dead     rowq_queue.group_after_dead%type,
    max_leased           rowq_queue.max_leased%type,
    rate_limit           rowq_queue.rate_limit%type,
    rate_seconds         rowq_queue.rate_seconds%type,
    result_seconds       rowq_queue.result_seconds%type,
    history_days         rowq_queue.history_days%type,
    paused_at            rowq_queue.paused_at%type,
    waiting_until        rowq_queue.waiting_until%type
);
type t_claim is record (
    claim_id    rowq_claim.claim_id%type,
    worker_name rowq_claim.worker_name%type,
    leased_at   rowq_claim.leased_at%type
);
type t_message is record (
    message_id      rowq_message.message_id%type,
    lane            rowq_ready.lane%type,
    attempt         rowq_ready.attempt%type,
    seq             rowq_ready.seq%type,
    group_key       rowq_message.group_key%type,
    is_without_slot number(1),
    is_cancelled    rowq_leased.is_cancelled%type
);
type t_messages is table of t_message index by pls_integer;
type t_locked_row is record (
    row_id     rowid,
    message_id rowq_message.message_id%type,
    lane       rowq_ready.lane%type,
    attempt    rowq_ready.attempt%type,
    seq        rowq_ready.seq%type
);
type t_locked_rows is table of t_locked_row index by pls_integer;
type t_lane is record (
    lane      rowq_lane.lane%type,
    floor_seq rowq_lane.floor_seq%type
);
type t_lanes is table of t_lane index by pls_integer;
type t_open_lane is record (
    queue_id      rowq_queue.queue_id%type,
    lease_seconds rowq_queue.lease_seconds%type,
    max_leased    rowq_queue.max_leased%type,
    rate_limit    rowq_queue.rate_limit%type,
    paused_at     rowq_queue.paused_at%type,
    lane          rowq_lane.lane%type,
    floor_seq     rowq_lane.floor_seq%type
);
type t_open_lanes is table of t_open_lane index by pls_integer;
type t_new_message is record (
    message_id            rowq_message.message_id%type,
    lane                  rowq_message.lane%type,
    seq                   rowq_message.seq%type,
    enqueued_at           rowq_message.enqueued_at%type,
    due_at                rowq_message.due_at%type,
    expires_at            rowq_message.expires_at%type,
    body                  rowq_message.body%type,
    body_binary           rowq_message.body_binary%type,
    message_type          rowq_message.message_type%type,
    headers               rowq_message.headers%type,
    dedup_key             rowq_message.dedup_key%type,
    max_attempts          rowq_message.max_attempts%type,
    group_key             rowq_message.group_key%type,
    producer_name         rowq_message.producer_name%type,
    outcome               varchar2(20 char),
    place                 number(10),
    predecessor_ids       rowq_ids,
    predecessor_positions rowq_ids,
    on_predecessor_dead   rowq_blocked.on_dead%type,
    topic                 rowq_topic_binding.topic_pattern%type
);
type t_new_messages is table of t_new_message index by pls_integer;
-- place is the position in its batch of a message that the queue receives.
type t_bound_queue is record (
    place           number(10),
    queue_id        rowq_queue.queue_id%type,
    queue_name      rowq_queue.queue_name%type,
    queue_key       rowq_queue.queue_key%type,
    max_body_length rowq_queue.max_body_length%type,
    waiting_until   rowq_queue.waiting_until%type
);
type t_bound_queues is table of t_bound_queue index by pls_integer;
type t_numbers is table of number index by pls_integer;
-- As long as a caller may pass the values, so that they can be checked before they are stored.
type t_schedule is record (
    queue_id         rowq_schedule.queue_id%type,
    schedule_key     rowq_schedule.schedule_key%type,
    schedule_name    varchar2(32767),
    cron             varchar2(32767),
    interval_seconds number,
    time_zone        varchar2(32767),
    missed           varchar2(32767),
    overlap          number,
    starts_at        rowq_schedule.starts_at%type,
    ends_at          rowq_schedule.ends_at%type,
    message_type     varchar2(32767),
    priority         number,
    group_key        varchar2(32767),
    max_attempts     number,
    is_paused        number,
    next_run_at      rowq_schedule.next_run_at%type,
    last_message_id  rowq_schedule.last_message_id%type,
    counts_from      varchar2(32767),
    is_running       rowq_schedule.is_running%type,
    headers          clob,
    body             clob,
    body_binary      blob
);
-- first_id is the first message that waits in the group; slots are the numbers of its slots.
type t_group is record (
    group_limit   rowq_queue.group_limit%type,
    pause_seconds rowq_queue.group_pause_seconds%type,
    waiting_until rowq_queue.waiting_until%type,
    first_id      rowq_group_waiting.message_id%type,
    slots         t_numbers
);
type t_group_row is record (
    group_limit   rowq_queue.group_limit%type,
    pause_seconds rowq_queue.group_pause_seconds%type,
    waiting_until rowq_queue.waiting_until%type,
    first_id      rowq_group_waiting.message_id%type,
    slot_no       rowq_group_slot.slot_no%type
);
type t_group_rows is table of t_group_row index by pls_integer;
-- A due row of expiry. state is the table in which its message waits, null if it does not wait, or
-- 'later' if it is checked again at later_at.
type t_expiring is record (
    expires_at rowq_expiry.expires_at%type,
    expiry_id  rowq_expiry.expiry_id%type,
    message_id rowq_expiry.message_id%type,
    lane       rowq_expiry.lane%type,
    seq        rowq_expiry.seq%type,
    due_at     rowq_message.due_at%type,
    group_key  rowq_message.group_key%type,
    later_at   rowq_expiry.expires_at%type,
    state      varchar2(20 char)
);
type t_expiring_list is table of t_expiring index by pls_integer;
type t_clobs is table of clob index by pls_integer;
type t_timestamps is table of timestamp(6) index by pls_integer;
type t_row_ids is table of rowid index by pls_integer;
type t_keys is table of raw(800) index by pls_integer;
type t_key_lists is table of rowq_keys index by pls_integer;
type t_texts is table of rowq_message.dedup_key%type index by pls_integer;
-- The shapes of the patterns with a prefix, by that prefix in hex.
type t_shapes is table of t_texts index by varchar2(4000);
-- Positions by the text of an id, or by a result of internal_dedup_order.
type t_positions is table of pls_integer index by varchar2(4000);
