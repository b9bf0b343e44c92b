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
-- purpose   Do the housekeeping of one queue, or of every queue, and return a row for each unless @is_quiet; after an error in one of all queues the others are done, and then it is raised.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P32 P36 P37
-- locks     a row of lane of each queue in turn, passed over when locked; as promote, reap,
--           InternalRunSchedules, archive
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   no such helper elsewhere: here the job of SQL Server Agent wants no rows each second
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    declare @begun int;
    declare @state int;
    declare @is_named bit = iif(@queue_name is null, 0, 1);
    declare @turn int = 0;
    declare @part_id int;
    declare @elected bit;
    declare @promoted int;
    declare @reaped int;
    declare @died int;
    declare @expired int;
    declare @archived int;
    declare @purged int;
    declare @dropped int;
    declare @text nvarchar(2048);
    -- More than a batch of results and history goes only till then, whatever the number of queues.
    declare @until datetime2(6) = dateadd(millisecond, 100, sysutcdatetime());
    declare @parts table (
        turn    int not null primary key,
        part_id int not null
    );
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
        set @state = xact_state();
        if @is_named = 1
        begin
            exec rowq.InternalRequireQueue @queue_name, @part_id output;
            insert into @parts (turn, part_id) values (1, @part_id);
        end;
        else
        begin
            -- The order is random, so that no queue always comes behind one that takes long. A row
            -- of part is locked by a drop only; one of queue, by whoever alters or pauses it.
            insert into @parts (turn, part_id)
            select r.turn, r.part_id
            from (
                select row_number() over (order by newid()) as turn, p.part_id
                from rowq.part p with (rowlock, readpast, readcommittedlock)
                where p.part_id > 0
            ) r
            where r.turn <= 1000;
            -- A queue that another session holds must not stop the others. In the caller's
            -- transaction a wait that is broken off would doom that, so there it is the caller's.
            if @state = 0
                set lock_timeout 1000;
        end;

        while 1 = 1
        begin
            set @turn += 1;
            select @part_id = p.part_id from @parts p where p.turn = @turn;
            if @@rowcount = 0
                break;
            exec rowq.InternalMaintainQueue
                @part_id, @is_named, @batch_size, @until, @elected output, @promoted output,
                @reaped output, @died output, @expired output, @archived output, @purged output,
                @dropped output;
            if @elected is not null
                insert into @rows (
                    part_id, elected, promoted, reaped, died, archived, purged, partitions_dropped,
                    expired
                )
                values (
                    @part_id, @elected, @promoted, @reaped, @died, @archived, @purged, @dropped,
                    @expired
                );
        end;
    end try
    begin catch
        -- One queue has failed: maintain the others, unless the caller's transaction is lost, and
        -- then raise that error, which is still this block's. An error in a further queue is
        -- printed.
        while xact_state() = @state
        begin
            set @turn += 1;
            select @part_id = p.part_id from @parts p where p.turn = @turn;
            if @@rowcount = 0
                break;
            begin try
                exec rowq.InternalMaintainQueue
                    @part_id, @is_named, @batch_size, @until, @elected output, @promoted output,
                    @reaped output, @died output, @expired output, @archived output,
                    @purged output, @dropped output;
            end try
            begin catch
                set @text = left(concat(N'rowq maintain: ', error_message()), 2000);
                print @text;
            end catch;
        end;
        throw;
    end catch;

    if @is_quiet = 1
        return;
    select q.queue_name, j.elected, j.promoted, j.reaped, j.died, j.archived, j.purged,
           j.partitions_dropped, j.expired
    from @rows j
    inner join rowq.queue q with (forceseek) on q.part_id = j.part_id
    order by j.part_id
    option (loop join, maxdop 1, keepfixed plan);
end
go
