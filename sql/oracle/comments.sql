-- This lets SQL Developer and other tools show what each table and column is. A package can have no
-- comment: its specification says above each routine what that does. The script may run any number
-- of times, and changes only a comment that is not right yet. It leaves alone what is not there.
declare
    procedure describe(
        p_table_name in varchar2,
        p_column_name in varchar2,
        p_comment in varchar2
    ) is
        v_count number;
        v_kind  varchar2(10 char) := 'table ';
        v_name  varchar2(300 char) := p_table_name;
    begin
        if p_column_name is null then
            select count(*)
            into v_count
            from user_tab_comments c
            where c.table_name = upper(p_table_name)
              and (c.comments is null or c.comments <> p_comment);
        else
            v_kind := 'column ';
            v_name := p_table_name || '.' || p_column_name;
            select count(*)
            into v_count
            from user_col_comments c
            where c.table_name = upper(p_table_name)
              and c.column_name = upper(p_column_name)
              and (c.comments is null or c.comments <> p_comment);
        end if;
        if v_count > 0 then
            execute immediate 'comment on ' || v_kind || v_name || ' is '''
                || replace(p_comment, '''', '''''') || '''';
        end if;
    end describe;
begin
    -- comments: generated from contract.toml by make generate
    describe('rowq_archive', null, 'Finished messages, kept for the queue''s archive_days.');
    describe('rowq_blocked', null, 'Messages that wait for others to end.');
    describe('rowq_claim', null, 'One successful dequeue each: the lease of a batch.');
    describe('rowq_dead', null, 'Messages that failed for good, until they are reset, cancelled or purged.');
    describe('rowq_dedup', null, 'Dedup keys of unfinished messages.');
    describe('rowq_delayed', null, 'Messages that wait for their time.');
    describe('rowq_door', null, 'A few rows a queue: whoever adds a token to a group, or a dedup key of a schedule, locks the one that a hash of the key names; they never change.');
    describe('rowq_expiry', null, 'When messages expire: what is due is withdrawn by maintain, or has ended before.');
    describe('rowq_finished', null, 'Finished messages of queues that keep an archive, until archive moves them there.');
    describe('rowq_gate', null, 'One row a queue, which a dequeue of a limited queue locks while it counts and takes.');
    describe('rowq_grouped', null, 'Messages that wait behind others of their groups.');
    describe('rowq_history', null, 'Attempts that have ended, kept for the queue''s history_days.');
    describe('rowq_lane', null, 'Lanes of each queue, and where their live rows begin, so that no reader walks the dead rows before them.');
    describe('rowq_leased', null, 'Messages of the claims, in the order of their delivery.');
    describe('rowq_message', null, 'What the producers handed over: written once, deleted once.');
    describe('rowq_message_group', null, 'Tokens: each is the right of one message of a group to be ready, leased or waiting for a retry.');
    describe('rowq_meta', null, 'What is installed: schema_version and rowq_version.');
    describe('rowq_queue', null, 'Queues and their settings.');
    describe('rowq_ready', null, 'Messages that wait for a worker; the primary key is the order of delivery.');
    describe('rowq_recheck', null, 'What could not be passed on at once, because others were at work on it: tokens of groups, messages that waited for others; maintain looks at it again.');
    describe('rowq_result', null, 'How messages have ended, with their results, kept for the queue''s result_seconds.');
    describe('rowq_schedule', null, 'Schedules, whose messages maintain adds to their queues when they are due.');
    describe('rowq_started', null, 'The deliveries of queues with a rate_limit that began within their rate_seconds: a row each dequeue.');
    describe('rowq_successor', null, 'Which message waits for which other one.');
    describe('rowq_topic_binding', null, 'Which queue gets what is published under which topics.');
    describe('rowq_worker', null, 'Worker processes that have reported, and how much they do.');
    describe('rowq_archive', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_archive', 'finished_at', 'When it was completed, cancelled, expired or declared dead.');
    describe('rowq_archive', 'message_id', 'The message.');
    describe('rowq_archive', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_archive', 'attempt', 'How many times the message has been leased.');
    describe('rowq_archive', 'enqueued_at', 'When the producer handed it over.');
    describe('rowq_archive', 'state', 'completed, cancelled or expired.');
    describe('rowq_archive', 'message_type', 'The producer''s label.');
    describe('rowq_archive', 'dedup_key', 'The producer''s dedup key.');
    describe('rowq_archive', 'headers', 'The producer''s headers.');
    describe('rowq_archive', 'body', 'Text body, or null.');
    describe('rowq_archive', 'body_binary', 'Binary body, or null.');
    describe('rowq_archive', 'group_key', 'The producer''s group key.');
    describe('rowq_blocked', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_blocked', 'message_id', 'The message.');
    describe('rowq_blocked', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_blocked', 'predecessor_id', 'The message that it waits for now; null where that is to be found out.');
    describe('rowq_blocked', 'due_at', 'When the message may be delivered, if it has a time of its own.');
    describe('rowq_blocked', 'on_dead', 'What a dead predecessor does to the message: hold, continue or fail; null is hold.');
    describe('rowq_blocked', 'group_key', 'The group that it joins when it waits for nothing any more.');
    describe('rowq_blocked', 'rest_ids', 'The other messages that it may have to wait for, in order.');
    describe('rowq_claim', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_claim', 'claim_id', 'The claim that holds the lease; pass it to the finishing routines.');
    describe('rowq_claim', 'leased_at', 'When the dequeue leased the message.');
    describe('rowq_claim', 'lease_until', 'When the lease runs out.');
    describe('rowq_claim', 'worker_name', 'Who holds the lease.');
    describe('rowq_claim', 'has_cancels', 'Whether messages of the batch were cancelled while the worker had them; null or 0 for no.');
    describe('rowq_claim', 'progress', 'How far the work is, as the worker said last.');
    describe('rowq_dead', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_dead', 'message_id', 'The message.');
    describe('rowq_dead', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_dead', 'attempt', 'How many times the message has been leased.');
    describe('rowq_dead', 'died_at', 'When it failed for good.');
    describe('rowq_dead', 'holds_group', 'Whether the dead message has kept its token, so that its group waits; else null.');
    describe('rowq_dedup', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_dedup', 'dedup_key', 'The producer''s dedup key.');
    describe('rowq_dedup', 'message_id', 'The message.');
    describe('rowq_delayed', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_delayed', 'due_at', 'When a delayed message becomes ready.');
    describe('rowq_delayed', 'message_id', 'The message.');
    describe('rowq_delayed', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_delayed', 'attempt', 'How many times the message has been leased.');
    describe('rowq_delayed', 'group_key', 'Group that the message joins when it is due; null for one that has its token.');
    describe('rowq_door', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_door', 'door_no', 'Number of the door, from 0.');
    describe('rowq_expiry', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_expiry', 'expires_at', 'Maintain looks for the message from this moment on.');
    describe('rowq_expiry', 'expiry_id', 'Makes the key unique.');
    describe('rowq_expiry', 'message_id', 'The message.');
    describe('rowq_expiry', 'lane', 'Lane in which the message is if it is ready.');
    describe('rowq_expiry', 'seq', 'Its place there; null where the row was written for another place.');
    describe('rowq_finished', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_finished', 'finish_id', 'The call that finished the messages; the archive goes in this order.');
    describe('rowq_finished', 'message_id', 'The message.');
    describe('rowq_finished', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_finished', 'attempt', 'How many times the message has been leased.');
    describe('rowq_finished', 'state', 'completed, cancelled or expired.');
    describe('rowq_finished', 'finished_at', 'When it was completed, cancelled, expired or declared dead.');
    describe('rowq_gate', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_gate', 'taken_at', 'When a dequeue last took the gate.');
    describe('rowq_grouped', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_grouped', 'group_key', 'The producer''s group key.');
    describe('rowq_grouped', 'message_id', 'The message.');
    describe('rowq_grouped', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_history', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_history', 'ended_at', 'When the attempt ended.');
    describe('rowq_history', 'message_id', 'The message.');
    describe('rowq_history', 'claim_id', 'The claim that held the message.');
    describe('rowq_history', 'attempt', 'How many times the message has been leased.');
    describe('rowq_history', 'leased_at', 'When the dequeue leased the message.');
    describe('rowq_history', 'outcome', 'completed, retrying, dead, released, lease_expired or cancelled.');
    describe('rowq_history', 'worker_name', 'Who held the lease.');
    describe('rowq_history', 'error', 'What the worker said went wrong, or that the lease expired; else null.');
    describe('rowq_lane', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_lane', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_lane', 'is_open', 'Whether dequeue looks into the lane; a mark of its own where the lane is below 0.');
    describe('rowq_lane', 'floor_seq', 'Where the live rows of the lane begin: a hint.');
    describe('rowq_lane', 'check_after', 'No rescan looks at the lane before this moment.');
    describe('rowq_leased', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_leased', 'claim_id', 'The claim that holds the lease; pass it to the finishing routines.');
    describe('rowq_leased', 'place', 'Place in the order of delivery.');
    describe('rowq_leased', 'message_id', 'The message.');
    describe('rowq_leased', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_leased', 'attempt', 'How many times the message has been leased.');
    describe('rowq_leased', 'is_cancelled', 'Whether the message was cancelled while its worker had it; null or 0 for no.');
    describe('rowq_message', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_message', 'message_id', 'The message.');
    describe('rowq_message', 'max_attempts', 'Leases before a message is dead; of a message: null for the queue''s setting.');
    describe('rowq_message', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_message', 'seq', 'Place in the lane; it only grows.');
    describe('rowq_message', 'enqueued_at', 'When the producer handed it over.');
    describe('rowq_message', 'due_at', 'When a delayed message becomes ready.');
    describe('rowq_message', 'message_type', 'The producer''s label.');
    describe('rowq_message', 'dedup_key', 'The producer''s dedup key.');
    describe('rowq_message', 'headers', 'The producer''s headers.');
    describe('rowq_message', 'body', 'Text body, or null.');
    describe('rowq_message', 'body_binary', 'Binary body, or null.');
    describe('rowq_message', 'last_error', 'What went wrong last, or null.');
    describe('rowq_message', 'group_key', 'The producer''s group key.');
    describe('rowq_message', 'has_successors', 'Whether a message has waited for this one; null for no.');
    describe('rowq_message', 'expires_at', 'When maintain withdraws the message unless it has ended, or null.');
    describe('rowq_message_group', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_message_group', 'group_key', 'The producer''s group key.');
    describe('rowq_message_group', 'token_no', 'Number of the token in its group, from 1.');
    describe('rowq_message_group', 'joined_at', 'When a message last joined the group behind this token.');
    describe('rowq_meta', 'name', 'What the value is of.');
    describe('rowq_meta', 'value', 'The value.');
    describe('rowq_meta', 'changed_at', 'When the value was set.');
    describe('rowq_queue', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_queue', 'queue_name', 'Name of the queue.');
    describe('rowq_queue', 'queue_key', 'Bytes of the name, which are what is compared.');
    describe('rowq_queue', 'lease_seconds', 'Setting: default lease.');
    describe('rowq_queue', 'max_attempts', 'Leases before a message is dead; of a message: null for the queue''s setting.');
    describe('rowq_queue', 'backoff_base_seconds', 'Setting: delay before the second attempt.');
    describe('rowq_queue', 'backoff_factor', 'Setting: growth of the delay.');
    describe('rowq_queue', 'backoff_cap_seconds', 'Setting: longest delay.');
    describe('rowq_queue', 'backoff_jitter', 'Setting: random share taken off a delay.');
    describe('rowq_queue', 'archive_days', 'Setting: days in the archive.');
    describe('rowq_queue', 'max_body_length', 'Setting: longest body.');
    describe('rowq_queue', 'group_limit', 'Setting: messages of one group in work at once.');
    describe('rowq_queue', 'group_after_dead', 'Setting: continue or hold.');
    describe('rowq_queue', 'group_pause_seconds', 'Setting: rest of a group between two messages.');
    describe('rowq_queue', 'max_leased', 'Setting: most messages leased at a time; 0 is no limit.');
    describe('rowq_queue', 'rate_limit', 'Setting: most deliveries begun within rate_seconds; 0 is no limit.');
    describe('rowq_queue', 'rate_seconds', 'Setting: the time that rate_limit is about.');
    describe('rowq_queue', 'result_seconds', 'Setting: how long results are kept; 0 is not at all.');
    describe('rowq_queue', 'history_days', 'Setting: days that ended attempts are kept; 0 is not at all.');
    describe('rowq_queue', 'paused_at', 'Since when dequeue is stopped; null while it is not.');
    describe('rowq_queue', 'listened_until', 'Until then a session waits for a ring; null where doorbell.sql was never run.');
    describe('rowq_queue', 'created_at', 'When the queue was created.');
    describe('rowq_ready', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_ready', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.');
    describe('rowq_ready', 'seq', 'Place in the lane; it only grows.');
    describe('rowq_ready', 'message_id', 'The message.');
    describe('rowq_ready', 'attempt', 'How many times the message has been leased.');
    describe('rowq_recheck', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_recheck', 'due_at', 'Maintain looks at it from this moment on.');
    describe('rowq_recheck', 'recheck_id', 'Makes the key unique.');
    describe('rowq_recheck', 'group_key', 'The group that the token is of; null where it is no token.');
    describe('rowq_recheck', 'is_hint', 'Whether there is no token yet, but may be one to take; of a predecessor: whether it is dead.');
    describe('rowq_recheck', 'message_id', 'A blocked message that may wait for nothing any more.');
    describe('rowq_recheck', 'predecessor_id', 'A message that has ended, of which not all successors were freed.');
    describe('rowq_result', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_result', 'message_id', 'The message.');
    describe('rowq_result', 'finished_at', 'When it was completed, cancelled, expired or declared dead.');
    describe('rowq_result', 'state', 'completed, cancelled, expired or dead.');
    describe('rowq_result', 'result', 'What complete was given for the message, or null.');
    describe('rowq_result', 'last_error', 'What went wrong last, or null.');
    describe('rowq_schedule', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_schedule', 'schedule_key', 'Bytes of the name, which are what is compared.');
    describe('rowq_schedule', 'schedule_name', 'Name of the schedule.');
    describe('rowq_schedule', 'cron', 'Its times as in a crontab, or null.');
    describe('rowq_schedule', 'interval_seconds', 'Seconds between its ticks, or null.');
    describe('rowq_schedule', 'time_zone', 'Whose clocks cron means.');
    describe('rowq_schedule', 'missed', 'What becomes of late ticks: skip, once or all.');
    describe('rowq_schedule', 'overlap', 'Whether a tick makes a message while that of an earlier one has not ended.');
    describe('rowq_schedule', 'starts_at', 'No tick comes before this moment; intervals are counted from it.');
    describe('rowq_schedule', 'ends_at', 'No tick comes after this moment, or null.');
    describe('rowq_schedule', 'message_type', 'The producer''s label.');
    describe('rowq_schedule', 'priority', '0 to 9; 0 is delivered first.');
    describe('rowq_schedule', 'group_key', 'The producer''s group key.');
    describe('rowq_schedule', 'max_attempts', 'Leases before a message is dead; of a message: null for the queue''s setting.');
    describe('rowq_schedule', 'is_paused', 'It is stopped: a queue delivers nothing, a schedule makes no message.');
    describe('rowq_schedule', 'next_run_at', 'The next tick; null while the schedule is paused, and after its last one.');
    describe('rowq_schedule', 'last_run_at', 'When it last made a message, or null.');
    describe('rowq_schedule', 'last_message_id', 'The message that it made then, or null.');
    describe('rowq_schedule', 'last_error', 'What went wrong last, or null.');
    describe('rowq_schedule', 'headers', 'The producer''s headers.');
    describe('rowq_schedule', 'body', 'Text body, or null.');
    describe('rowq_schedule', 'body_binary', 'Binary body, or null.');
    describe('rowq_started', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_started', 'started_at', 'When the dequeue leased them.');
    describe('rowq_started', 'claim_id', 'The claim that holds the lease; pass it to the finishing routines.');
    describe('rowq_started', 'messages', 'How many messages the dequeue leased.');
    describe('rowq_successor', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_successor', 'predecessor_id', 'The message that it waits for now; null where that is to be found out.');
    describe('rowq_successor', 'message_id', 'The message.');
    describe('rowq_topic_binding', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_topic_binding', 'pattern_key', 'Bytes of the pattern, which are what is compared.');
    describe('rowq_topic_binding', 'topic_pattern', 'What of the topics the queue gets.');
    describe('rowq_topic_binding', 'head_key', 'Bytes of the words before the first * or #, which the topic has to begin with; of a dot where there are none.');
    describe('rowq_topic_binding', 'shape', 'A digit for each word of the pattern: 1 is *, 2 is #, 0 any other.');
    describe('rowq_worker', 'part_id', 'The queue; never used again for another one.');
    describe('rowq_worker', 'worker_key', 'Bytes of the id, which are what is compared.');
    describe('rowq_worker', 'worker_id', 'The worker process.');
    describe('rowq_worker', 'worker_name', 'Who holds the lease, or has held it.');
    describe('rowq_worker', 'host_name', 'Where the worker runs, or null.');
    describe('rowq_worker', 'worker_version', 'What the worker runs, or null.');
    describe('rowq_worker', 'threads', 'How many handlers the worker runs at a time.');
    describe('rowq_worker', 'started_at', 'When the worker reported first.');
    describe('rowq_worker', 'last_seen_at', 'When the worker reported last.');
    describe('rowq_worker', 'completed', 'Messages that the worker has completed since its start.');
    describe('rowq_worker', 'failed', 'Attempts that have failed in the worker since its start.');
    describe('rowq_worker', 'completed_per_second', 'Messages completed a second, between the worker''s last two reports.');
    describe('rowq_worker', 'failed_per_second', 'Attempts failed a second, between the worker''s last two reports.');
    -- end of comments
end;
/
