set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPurgeArchive
    @part_id int,
    @before datetime2(6),
    @limit int,
    @purged int output
as
begin
-- routine   InternalPurgeArchive
-- purpose   Delete up to @limit of a queue's archived messages that finished before @before.
-- promise   P19
-- locks     archive rows, passing over locked ones
    set nocount on;
    declare @old table (
        finished_at datetime2(6) not null,
        message_id  bigint not null,
        primary key (finished_at, message_id)
    );

    -- Find rows with locks that do not last: where partitions are not read in their order, a sort
    -- reads all that are old enough.
    insert into @old (finished_at, message_id)
    select top (@limit) a.finished_at, a.message_id
    from rowq.archived a
        with (index (archived_pk), rowlock, readpast, readcommittedlock, forceseek)
    where a.part_id = @part_id
      and a.finished_at < @before
    order by a.finished_at, a.message_id
    option (maxdop 1, keepfixed plan);
    -- Lock exclusively from the start: an update lock would be granted beside a reader's lasting
    -- shared lock, and the delete would then wait for that reader.
    delete a
    from @old o
    inner join rowq.archived a
        with (index (archived_pk), rowlock, xlock, readpast, readcommittedlock, forceseek)
        on a.part_id = @part_id
       and a.finished_at = o.finished_at
       and a.message_id = o.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    set @purged = @@rowcount;
end
go
