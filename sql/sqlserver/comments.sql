-- This script lets SSMS and other tools show what each procedure and table is, as the property
-- MS_Description. It may run any number of times, and changes only a description that is not right
-- yet, because a change waits for whoever uses the object. It leaves alone what is not there.
set quoted_identifier on;
set ansi_nulls on;
go
declare @kind varchar(9), @name sysname, @description nvarchar(3000), @is_new bit;
declare described cursor local static read_only forward_only for
select w.kind, o.name, w.description, iif(p.value is null, 1, 0)
from (
    values
        -- comments: generated from contract.toml by make generate
        (N'procedure', N'CreateQueue', N'Create a queue; an existing queue of that name is left as it is.'),
        (N'procedure', N'AlterQueue', N'Change settings of a queue; null leaves a setting as it is.'),
        (N'procedure', N'DropQueue', N'Remove an empty queue, or with force a queue and everything in it, archive included.'),
        (N'procedure', N'PauseQueue', N'Stop delivery; enqueue and the finishing routines go on.'),
        (N'procedure', N'ResumeQueue', N'Start delivery again.'),
        (N'procedure', N'PurgeQueue', N'Delete waiting messages, ready and delayed; leased ones stay with their workers.'),
        (N'procedure', N'Enqueue', N'Hand over one message.'),
        (N'procedure', N'EnqueueBatch', N'Hand over many messages in one call: all of them or, on an error, none.'),
        (N'procedure', N'DequeueFast', N'Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.'),
        (N'procedure', N'DequeueWait', N'Do what dequeue_fast does, but wait until something is ready or the time is up; return fewer messages where they are long.'),
        (N'procedure', N'Peek', N'Show the next ready messages without leasing them.'),
        (N'procedure', N'Complete', N'Finish messages: they are gone, or in the archive, and never delivered again.'),
        (N'procedure', N'RetryLater', N'Give messages back for another attempt after a delay, the queue''s backoff unless delay_seconds is given; without an attempt left they are dead.'),
        (N'procedure', N'FailNow', N'Declare messages dead without another attempt.'),
        (N'procedure', N'Release', N'Give messages back to the front of their priority without spending the attempt.'),
        (N'procedure', N'ExtendLease', N'Heartbeat: hold all messages of a claim for lease_seconds from now; a lease is never shortened.'),
        (N'procedure', N'Cancel', N'Withdraw messages that no worker holds, dead ones too.'),
        (N'procedure', N'Reset', N'Make dead messages ready again, at the tail of their priority, with fresh attempts; null takes the oldest max_messages.'),
        (N'procedure', N'Maintain', N'All housekeeping of one queue, or of every queue: promote, reap, floors, archive. Call it about once a second.'),
        (N'procedure', N'Reap', N'Take unfinished messages back from claims whose lease ran out.'),
        (N'procedure', N'Promote', N'Make delayed messages ready whose time has come.'),
        (N'procedure', N'Archive', N'Move finished messages of a queue with archive_days above 0 to the archive.'),
        (N'procedure', N'PurgeArchive', N'Delete archived messages older than the queue''s archive_days, and drop partitions that no queue needs.'),
        (N'procedure', N'QueueStats', N'Counts, age and settings of one queue or all.'),
        (N'procedure', N'GetMessage', N'Where a message is and everything about it; no row when rowq does not know it.'),
        (N'procedure', N'ListDead', N'Dead messages, without their bodies, in the order of their ids.'),
        (N'procedure', N'Health', N'Report what needs attention: who holds back clean-up, overdue messages, expired leases, dead messages, a sequence behind its data.'),
        (N'procedure', N'Version', N'What is installed.'),
        (N'procedure', N'CareForIndexes', N'Rebuild or reorganize the indexes that traffic has worn out, as gently as the edition allows.'),
        (N'table', N'archived', N'Finished messages, kept for the queue''s archive_days.'),
        (N'table', N'claim', N'One successful dequeue each: the lease of a batch.'),
        (N'table', N'dead', N'Messages that failed for good, until they are reset, cancelled or purged.'),
        (N'table', N'dedup', N'Dedup keys of unfinished messages.'),
        (N'table', N'delayed', N'Messages that wait for their time.'),
        (N'table', N'finished', N'Finished messages of queues that keep an archive, until archive moves them there.'),
        (N'table', N'lane', N'Lanes of each queue, and where their live rows begin, so that no reader walks the dead rows before them.'),
        (N'table', N'leased', N'Messages of the claims, in the order of their delivery.'),
        (N'table', N'message', N'What the producers handed over: written once, deleted once.'),
        (N'table', N'meta', N'What is installed: schema_version and rowq_version.'),
        (N'table', N'part', N'One row a queue, which is locked while messages are added or moved, and never changes.'),
        (N'table', N'queue', N'Queues and their settings.'),
        (N'table', N'ready', N'Messages that wait for a worker; the primary key is the order of delivery.')
        -- end of comments
) w (kind, name, description)
inner join sys.objects o
    on o.schema_id = schema_id(N'rowq')
    and o.name = w.name
    and o.type = iif(w.kind = N'table', 'U', 'P')
left join sys.extended_properties p
    on p.class = 1
    and p.major_id = o.object_id
    and p.minor_id = 0
    and p.name = N'MS_Description'
where p.value is null
   or cast(p.value as nvarchar(3000)) <> w.description;
open described;
fetch next from described into @kind, @name, @description, @is_new;
while @@fetch_status = 0
begin
    if @is_new = 1
        exec sys.sp_addextendedproperty
            @name = N'MS_Description', @value = @description,
            @level0type = 'schema', @level0name = N'rowq', @level1type = @kind, @level1name = @name;
    else
        exec sys.sp_updateextendedproperty
            @name = N'MS_Description', @value = @description,
            @level0type = 'schema', @level0name = N'rowq', @level1type = @kind, @level1name = @name;
    fetch next from described into @kind, @name, @description, @is_new;
end;
close described;
deallocate described;
go
