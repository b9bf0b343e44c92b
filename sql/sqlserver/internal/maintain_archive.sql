set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalMaintainArchive
    @part_id int,
    @limit int,
    @archived int output,
    @purged int output,
    @partitions_dropped int output
as
begin
-- routine   InternalMaintainArchive
-- version   1
-- purpose   The archive part of maintain: drop partitions, move, purge whole days; a fault in it is a message, not an error.
-- promise   P09 P19
-- locks     as archive and purge_archive
-- commits   where the caller has no transaction, after each 1000 messages; never the caller's
-- errors    none
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    set lock_timeout 1000;
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @is_saved bit = 0;
    declare @tries_left int = 5;
    declare @begun nvarchar(100);
    declare @archive_days int;
    declare @before datetime2(6);
    declare @step int;
    declare @done int;
    declare @text nvarchar(2048);
    set @archived = 0;
    set @purged = 0;
    set @partitions_dropped = 0;

    -- A refusal must not doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- If the caller's transaction begins here, then at the caller's isolation level.
            if @owns_transaction = 0
                select @begun = m.value from rowq.meta m where m.name = N'schema_version';
            set transaction isolation level read committed;

            set @archive_days = 0;
            select @archive_days = q.archive_days
            from rowq.queue q
            where q.part_id = @part_id;
            if @archive_days = 0
                and not exists (select 1 from rowq.archived a where a.part_id = @part_id)
                and not exists (
                    select 1
                    from rowq.finished f with (readuncommitted)
                    where f.part_id = @part_id
                )
                break;
            if @owns_transaction = 1
            begin
                exec rowq.InternalDropDays @partitions_dropped output;
                exec rowq.InternalOpenDays @part_id;
            end;
            else
            begin
                save transaction rowq_call;
                set @is_saved = 1;
            end;

            while @archived < @limit
            begin
                set @step = iif(@limit - @archived < 1000, @limit - @archived, 1000);
                if @owns_transaction = 1
                    begin transaction;
                exec rowq.InternalArchive @part_id, @step, @done output;
                if @owns_transaction = 1
                    commit transaction;
                set @archived += @done;
                if @done < @step
                    break;
            end;
            -- Whole days, but for a queue that keeps nothing any more.
            set @before = iif(
                @archive_days > 0,
                cast(cast(dateadd(day, -@archive_days, sysutcdatetime()) as date) as datetime2(6)),
                sysutcdatetime()
            );
            while @purged < @limit
            begin
                set @step = iif(@limit - @purged < 1000, @limit - @purged, 1000);
                exec rowq.InternalPurgeArchive @part_id, @before, @step, @done output;
                set @purged += @done;
                if @done < @step
                    break;
            end;
            break;
        end try
        begin catch
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;
            else if @is_saved = 1 and xact_state() = 1
                rollback transaction rowq_call;

            -- Of a transaction that is lost the caller must hear.
            if @owns_transaction = 0 and xact_state() <> 1
                throw;
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            -- A full disk, say: the archive waits, promoting and reaping do not.
            if @tries_left = 0
            begin
                set @text = left(concat(N'rowq archive: ', error_message()), 2000);
                print @text;
            end;
        end catch;
    end;
end
go
