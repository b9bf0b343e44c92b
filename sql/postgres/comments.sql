-- This script lets "\df+", "\d+" and graphical tools show what each routine, table and column is.
-- It may run any number of times, and changes only a comment that is not right yet. It leaves alone
-- what is not there, and what belongs to an extension.
do $$
declare
    v_change text;
begin
    for v_change in
        with wanted (kind, name, column_name, comment) as (
            values
                -- comments: generated from contract.toml by make generate
                ('routine', 'create_queue', '', 'Create a queue; an existing queue of that name is left as it is.'),
                ('routine', 'alter_queue', '', 'Change settings of a queue; null leaves a setting as it is.'),
                ('routine', 'drop_queue', '', 'Remove an empty queue, or with force a queue and everything in it, archive included.'),
                ('routine', 'pause_queue', '', 'Stop delivery; enqueue and the finishing routines go on.'),
                ('routine', 'resume_queue', '', 'Start delivery again.'),
                ('routine', 'purge_queue', '', 'Delete waiting messages, ready and delayed; leased ones stay with their workers.'),
                ('routine', 'enqueue', '', 'Hand over one message.'),
                ('routine', 'enqueue_batch', '', 'Hand over many messages in one call: all of them or, on an error, none.'),
                ('routine', 'dequeue_fast', '', 'Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.'),
                ('routine', 'dequeue_wait', '', 'Do what dequeue_fast does, but wait until something is ready or the time is up; return fewer messages where they are long.'),
                ('routine', 'peek', '', 'Show the next ready messages without leasing them.'),
                ('routine', 'complete', '', 'Finish messages: they are gone, or in the archive, and never delivered again.'),
                ('routine', 'retry_later', '', 'Give messages back for another attempt after a delay, the queue''s backoff unless delay_seconds is given; without an attempt left they are dead.'),
                ('routine', 'fail_now', '', 'Declare messages dead without another attempt.'),
                ('routine', 'release', '', 'Give messages back to the front of their priority without spending the attempt.'),
                ('routine', 'extend_lease', '', 'Heartbeat: hold all messages of a claim for lease_seconds from now; a lease is never shortened.'),
                ('routine', 'cancel', '', 'Withdraw messages that no worker holds, dead ones too.'),
                ('routine', 'reset', '', 'Make dead messages ready again, at the tail of their priority, with fresh attempts; null takes the oldest max_messages.'),
                ('routine', 'maintain', '', 'All housekeeping of one queue, or of every queue: promote, reap, floors, archive. Call it about once a second.'),
                ('routine', 'reap', '', 'Take unfinished messages back from claims whose lease ran out.'),
                ('routine', 'promote', '', 'Make delayed messages ready whose time has come.'),
                ('routine', 'archive', '', 'Move finished messages of a queue with archive_days above 0 to the archive.'),
                ('routine', 'purge_archive', '', 'Delete archived messages older than the queue''s archive_days, and drop partitions that no queue needs.'),
                ('routine', 'queue_stats', '', 'Counts, age and settings of one queue or all.'),
                ('routine', 'get_message', '', 'Where a message is and everything about it; no row when rowq does not know it.'),
                ('routine', 'list_dead', '', 'Dead messages, without their bodies, in the order of their ids.'),
                ('routine', 'health', '', 'Report what needs attention: who holds back clean-up, overdue messages, expired leases, dead messages, a sequence behind its data.'),
                ('routine', 'version', '', 'What is installed.'),
                ('routine', 'listen', '', 'Have this session notified on the channel rowq of a queue''s new messages.'),
                ('routine', 'unlisten', '', 'Take back one listen; while nobody listens, producers notify nobody.'),
                ('routine', 'elect_keeper', '', 'Elect the one session that calls maintain for a queue each second; the others may call it more seldom.'),
                ('table', 'archive', '', 'Finished messages, kept for the queue''s archive_days.'),
                ('table', 'claim', '', 'One successful dequeue each: the lease of a batch.'),
                ('table', 'dead', '', 'Messages that failed for good, until they are reset, cancelled or purged.'),
                ('table', 'dedup', '', 'Dedup keys of unfinished messages.'),
                ('table', 'delayed', '', 'Messages that wait for their time.'),
                ('table', 'finished', '', 'Finished messages of queues that keep an archive, until archive moves them there.'),
                ('table', 'floor', '', 'Where the live rows of each lane begin, so that no reader walks the dead rows before them.'),
                ('table', 'gate', '', 'One row a queue, which a dequeue of a limited queue locks while it counts and takes.'),
                ('table', 'grouped', '', 'Messages that wait behind others of their groups.'),
                ('table', 'message', '', 'What the producers handed over: written once, deleted once.'),
                ('table', 'message_group', '', 'Tokens: each is the right of one message of a group to be ready, leased or waiting for a retry.'),
                ('table', 'meta', '', 'What is installed: schema_version and rowq_version.'),
                ('table', 'queue', '', 'Queues and their settings.'),
                ('table', 'ready', '', 'Messages that wait for a worker; the primary key is the order of delivery.'),
                ('table', 'recheck', '', 'Tokens that could not be passed on at once, and groups that may have more of them; maintain looks at them again.'),
                ('table', 'started', '', 'The deliveries of queues with a rate_limit that began within their rate_seconds: a row each dequeue.'),
                ('column', 'archive', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'archive', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
                ('column', 'archive', 'attempt', 'How many times the message has been leased.'),
                ('column', 'archive', 'message_id', 'The message.'),
                ('column', 'archive', 'enqueued_at', 'When the producer handed it over.'),
                ('column', 'archive', 'finished_at', 'When it was completed, cancelled or declared dead.'),
                ('column', 'archive', 'state', 'completed or cancelled.'),
                ('column', 'archive', 'message_type', 'The producer''s label.'),
                ('column', 'archive', 'dedup_key', 'The producer''s dedup key.'),
                ('column', 'archive', 'headers', 'The producer''s headers.'),
                ('column', 'archive', 'body', 'Text body, or null.'),
                ('column', 'archive', 'body_binary', 'Binary body, or null.'),
                ('column', 'archive', 'group_key', 'The producer''s group key.'),
                ('column', 'claim', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'claim', 'claim_id', 'The claim that holds the lease; pass it to the finishing routines.'),
                ('column', 'claim', 'lease_until', 'When the lease runs out.'),
                ('column', 'claim', 'message_ids', 'The messages of the batch.'),
                ('column', 'claim', 'lanes', 'Lanes of the messages, in the order of message_ids.'),
                ('column', 'claim', 'attempts', 'Attempts of the messages, in the order of message_ids.'),
                ('column', 'claim', 'errors', 'Last errors of the messages, in the order of message_ids; null when none has failed before.'),
                ('column', 'claim', 'worker_name', 'Who holds the lease.'),
                ('column', 'dead', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'dead', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
                ('column', 'dead', 'attempt', 'How many times the message has been leased.'),
                ('column', 'dead', 'message_id', 'The message.'),
                ('column', 'dead', 'died_at', 'When it failed for good.'),
                ('column', 'dead', 'last_error', 'Why the last attempt failed, or null.'),
                ('column', 'dead', 'holds_group', 'Whether the dead message has kept its token, so that its group waits; else null.'),
                ('column', 'dedup', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'dedup', 'message_id', 'The message.'),
                ('column', 'dedup', 'dedup_key', 'The producer''s dedup key.'),
                ('column', 'delayed', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'delayed', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
                ('column', 'delayed', 'attempt', 'How many times the message has been leased.'),
                ('column', 'delayed', 'message_id', 'The message.'),
                ('column', 'delayed', 'due_at', 'When a delayed message becomes ready.'),
                ('column', 'delayed', 'last_error', 'Why the last attempt failed, or null.'),
                ('column', 'delayed', 'group_key', 'Group that the message joins when it is due; null for one that has its token.'),
                ('column', 'finished', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'finished', 'finish_id', 'The call that finished the messages; the archive goes in this order.'),
                ('column', 'finished', 'finished_at', 'When it was completed, cancelled or declared dead.'),
                ('column', 'finished', 'message_ids', 'The messages of the batch.'),
                ('column', 'finished', 'lanes', 'Lanes of the messages, in the order of message_ids.'),
                ('column', 'finished', 'attempts', 'Attempts of the messages, in the order of message_ids.'),
                ('column', 'finished', 'state', 'completed or cancelled.'),
                ('column', 'floor', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'floor', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
                ('column', 'floor', 'generation', 'Counts down, so that the newest row of a lane is the first.'),
                ('column', 'floor', 'seq', 'Dequeue starts here; may have overtaken a writer that has not committed yet.'),
                ('column', 'floor', 'safe', 'Nothing can appear below this any more; maintain looks from here for late rows.'),
                ('column', 'floor', 'frontier', 'Newest number given out when this row''s pending mark was taken.'),
                ('column', 'floor', 'writers', 'Once every transaction older than this has ended, safe may move up to frontier.'),
                ('column', 'floor', 'rescan_at', 'No rescan looks below the floor before this moment.'),
                ('column', 'floor', 'sweep_at', 'No sweep, a rescan from the very start, begins before this moment.'),
                ('column', 'gate', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'grouped', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'grouped', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
                ('column', 'grouped', 'message_id', 'The message.'),
                ('column', 'grouped', 'group_key', 'The producer''s group key.'),
                ('column', 'grouped', 'last_error', 'Why the last attempt failed, or null.'),
                ('column', 'message', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'message', 'max_attempts', 'Leases before a message is dead; of a message: null for the queue''s setting.'),
                ('column', 'message', 'message_id', 'The message.'),
                ('column', 'message', 'enqueued_at', 'When the producer handed it over.'),
                ('column', 'message', 'message_type', 'The producer''s label.'),
                ('column', 'message', 'dedup_key', 'The producer''s dedup key.'),
                ('column', 'message', 'group_key', 'The producer''s group key.'),
                ('column', 'message', 'headers', 'The producer''s headers.'),
                ('column', 'message', 'body', 'Text body, or null.'),
                ('column', 'message', 'body_binary', 'Binary body, or null.'),
                ('column', 'message_group', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'message_group', 'token_no', 'Number of the token in its group, from 1.'),
                ('column', 'message_group', 'group_key', 'The producer''s group key.'),
                ('column', 'meta', 'name', 'What the value is of.'),
                ('column', 'meta', 'value', 'The value.'),
                ('column', 'meta', 'changed_at', 'When the value was set.'),
                ('column', 'queue', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'queue', 'queue_name', 'Name of the queue.'),
                ('column', 'queue', 'lease_seconds', 'Setting: default lease.'),
                ('column', 'queue', 'max_attempts', 'Leases before a message is dead; of a message: null for the queue''s setting.'),
                ('column', 'queue', 'backoff_base_seconds', 'Setting: delay before the second attempt.'),
                ('column', 'queue', 'backoff_factor', 'Setting: growth of the delay.'),
                ('column', 'queue', 'backoff_cap_seconds', 'Setting: longest delay.'),
                ('column', 'queue', 'backoff_jitter', 'Setting: random share taken off a delay.'),
                ('column', 'queue', 'archive_days', 'Setting: days in the archive.'),
                ('column', 'queue', 'max_body_length', 'Setting: longest body.'),
                ('column', 'queue', 'group_limit', 'Setting: messages of one group in work at once.'),
                ('column', 'queue', 'group_after_dead', 'Setting: continue or hold.'),
                ('column', 'queue', 'group_pause_seconds', 'Setting: rest of a group between two messages.'),
                ('column', 'queue', 'has_recheck', 'Whether a dequeue that finds nothing looks into recheck, too: maintain sets it once a token was left there.'),
                ('column', 'queue', 'max_leased', 'Setting: most messages leased at a time; 0 is no limit.'),
                ('column', 'queue', 'rate_limit', 'Setting: most deliveries begun within rate_seconds; 0 is no limit.'),
                ('column', 'queue', 'rate_seconds', 'Setting: the time that rate_limit is about.'),
                ('column', 'queue', 'paused_at', 'Since when dequeue is stopped; null while it is not.'),
                ('column', 'queue', 'created_at', 'When the queue was created.'),
                ('column', 'ready', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'ready', 'lane', 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
                ('column', 'ready', 'attempt', 'How many times the message has been leased.'),
                ('column', 'ready', 'seq', 'Place in the lane; it only grows.'),
                ('column', 'ready', 'message_id', 'The message.'),
                ('column', 'ready', 'last_error', 'Why the last attempt failed, or null.'),
                ('column', 'recheck', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'recheck', 'is_hint', 'Whether there is no token yet, but may be one to take.'),
                ('column', 'recheck', 'due_at', 'Maintain looks at it from this moment on.'),
                ('column', 'recheck', 'recheck_id', 'Makes the key unique.'),
                ('column', 'recheck', 'group_key', 'The group that the token is of.'),
                ('column', 'started', 'part_id', 'The queue; never used again for another one.'),
                ('column', 'started', 'messages', 'How many messages the dequeue leased.'),
                ('column', 'started', 'started_at', 'When the dequeue leased them.'),
                ('column', 'started', 'claim_id', 'The claim that holds the lease; pass it to the finishing routines.')
                -- end of comments
        ),
        object as (
            select
                'routine' as kind,
                p.proname as name,
                '' as column_name,
                p.oid::pg_catalog.regprocedure::text as full_name,
                pg_catalog.obj_description(p.oid, 'pg_proc') as comment,
                p.tableoid as classid,
                p.oid as objid
            from pg_catalog.pg_proc p
            where p.pronamespace = 'rowq'::pg_catalog.regnamespace
            union all
            select
                'table',
                c.relname,
                '',
                c.oid::pg_catalog.regclass::text,
                pg_catalog.obj_description(c.oid, 'pg_class'),
                c.tableoid,
                c.oid
            from pg_catalog.pg_class c
            where c.relnamespace = 'rowq'::pg_catalog.regnamespace
              and c.relkind in ('r', 'p')
            union all
            select
                'column',
                c.relname,
                a.attname,
                c.oid::pg_catalog.regclass::text || '.' || pg_catalog.quote_ident(a.attname),
                pg_catalog.col_description(c.oid, a.attnum),
                c.tableoid,
                c.oid
            from pg_catalog.pg_class c
            join pg_catalog.pg_attribute a on a.attrelid = c.oid
            where c.relnamespace = 'rowq'::pg_catalog.regnamespace
              and c.relkind in ('r', 'p')
              and a.attnum > 0
              and not a.attisdropped
        )
        select pg_catalog.format('comment on %s %s is %L', o.kind, o.full_name, w.comment)
        from wanted w
        join object o using (kind, name, column_name)
        where o.comment is distinct from w.comment
          and not exists (
              select 1
              from pg_catalog.pg_depend d
              where d.classid = o.classid
                and d.objid = o.objid
                and d.deptype = 'e'
          )
        order by o.kind, o.full_name
    loop
        execute v_change;
    end loop;
end;
$$;
