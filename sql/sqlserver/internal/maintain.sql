set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalMaintain
    @queue_name nvarchar(max),
    @batch_size int,
    @is_quiet bit
as
begin
-- routine   InternalMaintain
-- purpose   Do the housekeeping of one queue, or of every queue, and return a row for each unless @is_quiet.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P32 P36 P37
-- locks     a row of lane of each queue in turn, passed over when locked; as promote, reap,
--           InternalRunSchedules, archive
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   no such helper elsewhere: here the job of SQL Server Agent wants no rows each second
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    declare @begun int;
    declare @part_id int;
    declare @elected bit;
    declare @has_due bit;
    declare @promoted int;
    declare @reaped int;
    declare @died int;
    declare @expired int;
    declare @archived int;
    declare @purged int;
    declare @more int;
    declare @dropped int;
    -- More than a batch of results and history goes only till then, whatever the number of queues;
    -- results leave history half of that time.
    declare @until datetime2(6) = dateadd(millisecond, 100, sysutcdatetime());
    declare @until_results datetime2(6) = dateadd(millisecond, -50, @until);
    declare @parts table (part_id int not null primary key);
    declare @rows table (
        part_id            int not null primary key,
        elected            bit not null,
        promoted           int not null,
        reaped             int not null,
        died               int not null,
        archived           int not null,
        purged             int not null,
        partitions_dropped int not null,
        expired            int not null
    );

    begin try
        exec rowq.InternalCheckBatchSize @batch_size;
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        if @queue_name is null
            insert into @parts (part_id)
            select top (1000) q.part_id from rowq.queue q order by newid();
        else
        begin
            exec rowq.InternalRequireQueue @queue_name, @part_id output;
            insert into @parts (part_id) values (@part_id);
        end;

        while 1 = 1
        begin
            set @part_id = null;
            select top (1) @part_id = p.part_id from @parts p order by p.part_id;
            if @part_id is null
                break;
            delete from @parts where part_id = @part_id;
            begin try
                exec rowq.InternalMaintainDelivery
                    @part_id, @batch_size, @elected output, @promoted output, @reaped output,
                    @died output, @expired output, @has_due output;
                if @elected = 1 and @has_due = 1
                    exec rowq.InternalRunSchedules @part_id;
                set @archived = 0;
                set @purged = 0;
                set @dropped = 0;
                if @elected = 1
                begin
                    exec rowq.InternalMaintainArchive
                        @part_id, @batch_size, @archived output, @purged output, @dropped output;
                    exec rowq.InternalMaintainKept
                        @part_id, N'results', @batch_size, @until_results, @more output;
                    set @purged += @more;
                    exec rowq.InternalMaintainKept
                        @part_id, N'history', @batch_size, @until, @more output;
                    set @purged += @more;
                end;
                insert into @rows (
                    part_id, elected, promoted, reaped, died, archived, purged, partitions_dropped,
                    expired
                )
                values (
                    @part_id, @elected, @promoted, @reaped, @died, @archived, @purged, @dropped,
                    @expired
                );
            end try
            begin catch
                -- A queue that was dropped meanwhile is an error only if the caller has named it.
                if @queue_name is not null or error_number() <> 52701
                    throw;
            end catch;
        end;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;

    if @is_quiet = 1
        return;
    select q.queue_name, j.elected, j.promoted, j.reaped, j.died, j.archived, j.purged,
           j.partitions_dropped, j.expired
    from @rows j
    inner join rowq.queue q on q.part_id = j.part_id
    order by j.part_id;
end
go
