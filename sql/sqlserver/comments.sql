-- This script lets SSMS and other tools show what each procedure, table and column is, as the
-- property MS_Description. It may run any number of times, and changes only a description that is
-- not right yet, because a change waits for whoever uses the object. It leaves alone what is not
-- there.
set quoted_identifier on;
set ansi_nulls on;
go
declare @kind varchar(9), @name sysname, @part varchar(6), @column sysname;
declare @description nvarchar(3000), @is_new bit;
declare described cursor local static read_only forward_only for
select
    w.kind, o.name, iif(c.name is null, null, 'column'), c.name,
    w.description, iif(p.value is null, 1, 0)
from (
    values
        -- comments: generated from contract.toml by make generate
        (N'procedure', N'CreateQueue', N'', N'Create a queue; an existing queue of that name is left as it is.'),
        (N'procedure', N'AlterQueue', N'', N'Change settings of a queue; null leaves a setting as it is.'),
        (N'procedure', N'DropQueue', N'', N'Remove an empty queue, or with force a queue and everything in it, archive included.'),
        (N'procedure', N'PauseQueue', N'', N'Stop delivery; enqueue and the finishing routines go on.'),
        (N'procedure', N'ResumeQueue', N'', N'Start delivery again.'),
        (N'procedure', N'PurgeQueue', N'', N'Delete waiting messages, ready and delayed; leased ones stay with their workers.'),
        (N'procedure', N'Enqueue', N'', N'Hand over one message.'),
        (N'procedure', N'EnqueueBatch', N'', N'Hand over many messages in one call: all of them or, on an error, none.'),
        (N'procedure', N'DequeueFast', N'', N'Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.'),
        (N'procedure', N'DequeueWait', N'', N'Do what dequeue_fast does, but wait until something is ready or the time is up; return fewer messages where they are long.'),
        (N'procedure', N'Peek', N'', N'Show the next ready messages without leasing them.'),
        (N'procedure', N'Complete', N'', N'Finish messages: they are gone, or in the archive, and never delivered again.'),
        (N'procedure', N'RetryLater', N'', N'Give messages back for another attempt after a delay, the queue''s backoff unless delay_seconds is given; without an attempt left they are dead.'),
        (N'procedure', N'FailNow', N'', N'Declare messages dead without another attempt.'),
        (N'procedure', N'Release', N'', N'Give messages back to the front of their priority without spending the attempt.'),
        (N'procedure', N'ExtendLease', N'', N'Heartbeat: hold all messages of a claim for lease_seconds from now; a lease is never shortened.'),
        (N'procedure', N'Cancel', N'', N'Withdraw messages that no worker holds, dead ones too.'),
        (N'procedure', N'Reset', N'', N'Make dead messages ready again, at the tail of their priority, with fresh attempts; null takes the oldest max_messages.'),
        (N'procedure', N'Maintain', N'', N'All housekeeping of one queue, or of every queue: promote, reap, floors, archive. Call it about once a second.'),
        (N'procedure', N'Reap', N'', N'Take unfinished messages back from claims whose lease ran out.'),
        (N'procedure', N'Promote', N'', N'Make delayed messages ready whose time has come.'),
        (N'procedure', N'Archive', N'', N'Move finished messages of a queue with archive_days above 0 to the archive.'),
        (N'procedure', N'PurgeArchive', N'', N'Delete archived messages older than the queue''s archive_days, and drop partitions that no queue needs.'),
        (N'procedure', N'QueueStats', N'', N'Counts, age and settings of one queue or all.'),
        (N'procedure', N'GetMessage', N'', N'Where a message is and everything about it; no row when rowq does not know it.'),
        (N'procedure', N'ListDead', N'', N'Dead messages, without their bodies, in the order of their ids.'),
        (N'procedure', N'Health', N'', N'Report what needs attention: who holds back clean-up, overdue messages, expired leases, dead messages, a sequence behind its data.'),
        (N'procedure', N'Version', N'', N'What is installed.'),
        (N'procedure', N'CareForIndexes', N'', N'Rebuild or reorganize the indexes that traffic has worn out, as gently as the edition allows.'),
        (N'table', N'archived', N'', N'Finished messages, kept for the queue''s archive_days.'),
        (N'table', N'blocked', N'', N'Messages that wait for others to end.'),
        (N'table', N'claim', N'', N'One successful dequeue each: the lease of a batch.'),
        (N'table', N'dead', N'', N'Messages that failed for good, until they are reset, cancelled or purged.'),
        (N'table', N'dedup', N'', N'Dedup keys of unfinished messages.'),
        (N'table', N'delayed', N'', N'Messages that wait for their time.'),
        (N'table', N'finished', N'', N'Finished messages of queues that keep an archive, until archive moves them there.'),
        (N'table', N'gate', N'', N'One row a queue, which a dequeue of a limited queue locks while it counts and takes.'),
        (N'table', N'grouped', N'', N'Messages that wait behind others of their groups.'),
        (N'table', N'lane', N'', N'Lanes of each queue, and where their live rows begin, so that no reader walks the dead rows before them.'),
        (N'table', N'leased', N'', N'Messages of the claims, in the order of their delivery.'),
        (N'table', N'message', N'', N'What the producers handed over: written once, deleted once.'),
        (N'table', N'message_group', N'', N'Tokens: each is the right of one message of a group to be ready, leased or waiting for a retry.'),
        (N'table', N'meta', N'', N'What is installed: schema_version and rowq_version.'),
        (N'table', N'part', N'', N'One row a queue, which is locked while messages are added or moved, and never changes.'),
        (N'table', N'queue', N'', N'Queues and their settings.'),
        (N'table', N'ready', N'', N'Messages that wait for a worker; the primary key is the order of delivery.'),
        (N'table', N'recheck', N'', N'What could not be passed on at once, because others were at work on it: tokens of groups, messages that waited for others; maintain looks at it again.'),
        (N'table', N'started', N'', N'The deliveries of queues with a rate_limit that began within their rate_seconds: a row each dequeue.'),
        (N'table', N'successor', N'', N'Which message waits for which other one.'),
        (N'table', N'archived', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'archived', N'finished_at', N'When it was completed, cancelled or declared dead.'),
        (N'table', N'archived', N'message_id', N'The message.'),
        (N'table', N'archived', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'archived', N'attempt', N'How many times the message has been leased.'),
        (N'table', N'archived', N'enqueued_at', N'When the producer handed it over.'),
        (N'table', N'archived', N'state', N'completed or cancelled.'),
        (N'table', N'archived', N'message_type', N'The producer''s label.'),
        (N'table', N'archived', N'dedup_key', N'The producer''s dedup key.'),
        (N'table', N'archived', N'headers', N'The producer''s headers.'),
        (N'table', N'archived', N'body', N'Text body, or null.'),
        (N'table', N'archived', N'body_binary', N'Binary body, or null.'),
        (N'table', N'archived', N'group_key', N'The producer''s group key.'),
        (N'table', N'blocked', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'blocked', N'message_id', N'The message.'),
        (N'table', N'blocked', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'blocked', N'predecessor_id', N'The message that it waits for now; null where that is to be found out.'),
        (N'table', N'blocked', N'due_at', N'When the message may be delivered, if it has a time of its own.'),
        (N'table', N'blocked', N'on_dead', N'What a dead predecessor does to the message: hold, continue or fail; null is hold.'),
        (N'table', N'blocked', N'group_key', N'The group that it joins when it waits for nothing any more.'),
        (N'table', N'blocked', N'rest_ids', N'The other messages that it may have to wait for, in order.'),
        (N'table', N'claim', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'claim', N'claim_id', N'The claim that holds the lease; pass it to the finishing routines.'),
        (N'table', N'claim', N'lease_until', N'When the lease runs out.'),
        (N'table', N'claim', N'worker_name', N'Who holds the lease.'),
        (N'table', N'dead', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'dead', N'message_id', N'The message.'),
        (N'table', N'dead', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'dead', N'attempt', N'How many times the message has been leased.'),
        (N'table', N'dead', N'died_at', N'When it failed for good.'),
        (N'table', N'dead', N'holds_group', N'Whether the dead message has kept its token, so that its group waits; else null.'),
        (N'table', N'dedup', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'dedup', N'dedup_key', N'The producer''s dedup key.'),
        (N'table', N'dedup', N'message_id', N'The message.'),
        (N'table', N'delayed', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'delayed', N'due_at', N'When a delayed message becomes ready.'),
        (N'table', N'delayed', N'message_id', N'The message.'),
        (N'table', N'delayed', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'delayed', N'attempt', N'How many times the message has been leased.'),
        (N'table', N'delayed', N'group_key', N'Group that the message joins when it is due; null for one that has its token.'),
        (N'table', N'finished', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'finished', N'finished_at', N'When it was completed, cancelled or declared dead.'),
        (N'table', N'finished', N'message_id', N'The message.'),
        (N'table', N'finished', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'finished', N'attempt', N'How many times the message has been leased.'),
        (N'table', N'finished', N'state', N'completed or cancelled.'),
        (N'table', N'gate', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'grouped', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'grouped', N'group_key', N'The producer''s group key.'),
        (N'table', N'grouped', N'message_id', N'The message.'),
        (N'table', N'grouped', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'lane', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'lane', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'lane', N'is_open', N'Whether dequeue looks into the lane; a mark of its own where the lane is below 0.'),
        (N'table', N'lane', N'floor', N'Where the live rows of the lane begin: a hint.'),
        (N'table', N'lane', N'check_after', N'No rescan looks at the lane before this moment.'),
        (N'table', N'leased', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'leased', N'claim_id', N'The claim that holds the lease; pass it to the finishing routines.'),
        (N'table', N'leased', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'leased', N'seq', N'Place in the lane; it only grows.'),
        (N'table', N'leased', N'message_id', N'The message.'),
        (N'table', N'leased', N'attempt', N'How many times the message has been leased.'),
        (N'table', N'message', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'message', N'message_id', N'The message.'),
        (N'table', N'message', N'max_attempts', N'Leases before a message is dead; of a message: null for the queue''s setting.'),
        (N'table', N'message', N'enqueued_at', N'When the producer handed it over.'),
        (N'table', N'message', N'due_at', N'When a delayed message becomes ready.'),
        (N'table', N'message', N'message_type', N'The producer''s label.'),
        (N'table', N'message', N'dedup_key', N'The producer''s dedup key.'),
        (N'table', N'message', N'headers', N'The producer''s headers.'),
        (N'table', N'message', N'body', N'Text body, or null.'),
        (N'table', N'message', N'body_binary', N'Binary body, or null.'),
        (N'table', N'message', N'last_error', N'Why the last attempt failed, or null.'),
        (N'table', N'message', N'group_key', N'The producer''s group key.'),
        (N'table', N'message_group', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'message_group', N'group_key', N'The producer''s group key.'),
        (N'table', N'message_group', N'token_no', N'Number of the token in its group, from 1.'),
        (N'table', N'meta', N'name', N'What the value is of.'),
        (N'table', N'meta', N'value', N'The value.'),
        (N'table', N'meta', N'changed_at', N'When the value was set.'),
        (N'table', N'part', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'queue', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'queue', N'queue_key', N'Bytes of the name, which are what is compared.'),
        (N'table', N'queue', N'queue_name', N'Name of the queue.'),
        (N'table', N'queue', N'lease_seconds', N'Setting: default lease.'),
        (N'table', N'queue', N'max_attempts', N'Leases before a message is dead; of a message: null for the queue''s setting.'),
        (N'table', N'queue', N'backoff_base_seconds', N'Setting: delay before the second attempt.'),
        (N'table', N'queue', N'backoff_factor', N'Setting: growth of the delay.'),
        (N'table', N'queue', N'backoff_cap_seconds', N'Setting: longest delay.'),
        (N'table', N'queue', N'backoff_jitter', N'Setting: random share taken off a delay.'),
        (N'table', N'queue', N'archive_days', N'Setting: days in the archive.'),
        (N'table', N'queue', N'max_body_length', N'Setting: longest body.'),
        (N'table', N'queue', N'group_limit', N'Setting: messages of one group in work at once.'),
        (N'table', N'queue', N'group_after_dead', N'Setting: continue or hold.'),
        (N'table', N'queue', N'group_pause_seconds', N'Setting: rest of a group between two messages.'),
        (N'table', N'queue', N'has_recheck', N'Whether a dequeue that finds nothing looks into recheck, too: maintain sets it once a token was left there.'),
        (N'table', N'queue', N'max_leased', N'Setting: most messages leased at a time; 0 is no limit.'),
        (N'table', N'queue', N'rate_limit', N'Setting: most deliveries begun within rate_seconds; 0 is no limit.'),
        (N'table', N'queue', N'rate_seconds', N'Setting: the time that rate_limit is about.'),
        (N'table', N'queue', N'paused_at', N'Since when dequeue is stopped; null while it is not.'),
        (N'table', N'queue', N'created_at', N'When the queue was created.'),
        (N'table', N'ready', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'ready', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'ready', N'seq', N'Place in the lane; it only grows.'),
        (N'table', N'ready', N'message_id', N'The message.'),
        (N'table', N'ready', N'attempt', N'How many times the message has been leased.'),
        (N'table', N'recheck', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'recheck', N'due_at', N'Maintain looks at it from this moment on.'),
        (N'table', N'recheck', N'recheck_id', N'Makes the key unique.'),
        (N'table', N'recheck', N'message_id', N'A blocked message that may wait for nothing any more.'),
        (N'table', N'recheck', N'predecessor_id', N'A message that has ended, of which not all successors were freed.'),
        (N'table', N'recheck', N'group_key', N'The group that the token is of; null where it is no token.'),
        (N'table', N'recheck', N'is_hint', N'Whether there is no token yet, but may be one to take; of a predecessor: whether it is dead.'),
        (N'table', N'started', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'started', N'started_at', N'When the dequeue leased them.'),
        (N'table', N'started', N'claim_id', N'The claim that holds the lease; pass it to the finishing routines.'),
        (N'table', N'started', N'messages', N'How many messages the dequeue leased.'),
        (N'table', N'successor', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'successor', N'predecessor_id', N'The message that it waits for now; null where that is to be found out.'),
        (N'table', N'successor', N'message_id', N'The message.'),
        (N'table', N'successor', N'on_dead', N'What a dead predecessor does to the message: hold, continue or fail; null is hold.')
        -- end of comments
) w (kind, name, column_name, description)
inner join sys.objects o
    on o.schema_id = schema_id(N'rowq')
    and o.name = w.name
    and o.type = iif(w.kind = N'table', 'U', 'P')
left join sys.columns c
    on c.object_id = o.object_id
    and c.name = w.column_name
left join sys.extended_properties p
    on p.class = 1
    and p.major_id = o.object_id
    and p.minor_id = coalesce(c.column_id, 0)
    and p.name = N'MS_Description'
where (w.column_name = N'' or c.column_id is not null)
  and (p.value is null or cast(p.value as nvarchar(3000)) <> w.description);
open described;
fetch next from described into @kind, @name, @part, @column, @description, @is_new;
while @@fetch_status = 0
begin
    if @is_new = 1
        exec sys.sp_addextendedproperty
            @name = N'MS_Description', @value = @description,
            @level0type = 'schema', @level0name = N'rowq', @level1type = @kind, @level1name = @name,
            @level2type = @part, @level2name = @column;
    else
        exec sys.sp_updateextendedproperty
            @name = N'MS_Description', @value = @description,
            @level0type = 'schema', @level0name = N'rowq', @level1type = @kind, @level1name = @name,
            @level2type = @part, @level2name = @column;
    fetch next from described into @kind, @name, @part, @column, @description, @is_new;
end;
close described;
deallocate described;
go
