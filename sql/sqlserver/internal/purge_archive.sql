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
    -- Lock exclusively from the start: an update lock would be granted beside a reader's lasting
    -- shared lock, and the delete would then wait for that reader.
    with head as (
        select top (@limit) a.part_id, a.finished_at, a.message_id
        from rowq.archived a
            with (index (archived_pk), rowlock, xlock, readpast, readcommittedlock, forceseek)
        where a.part_id = @part_id
          and a.finished_at < @before
        order by a.finished_at, a.message_id
    )
    delete from head
    option (maxdop 1, keepfixed plan);
    set @purged = @@rowcount;
end
go
