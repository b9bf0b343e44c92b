set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalDropDays
    @partitions_dropped int output
with execute as owner
as
begin
-- routine   InternalDropDays
-- purpose   Empty the partitions of the archive that are too old for every queue, and take their bounds away.
-- promise   P19
-- locks     the archive, for a moment, waiting for a second at most
-- commits   never; call it outside transactions
-- differs   PostgreSQL drops them in the transaction of the caller
    set nocount on;
    set xact_abort off;
    set lock_timeout 1000;
    declare @keep_from datetime2(6);
    declare @first datetime2(6);
    declare @second datetime2(6);
    set @partitions_dropped = 0;

    -- Every queue counts, so this reads all rows. Without row versions another session may hold one
    -- of them: leave it to the next call then, and do not wait a second for each queue.
    begin try
        select @keep_from = cast(dateadd(day, -max(q.archive_days), sysutcdatetime()) as date)
        from rowq.queue q with (nowait);
    end try
    begin catch
        if error_number() <> 1222
            throw;
        return;
    end catch;

    while 1 = 1
    begin
        set @first = null;
        set @second = null;
        select @first = cast(v.value as datetime2(6))
        from sys.partition_functions f
        inner join sys.partition_range_values v on v.function_id = f.function_id
        where f.name = N'rowq_day'
          and v.boundary_id = 1;
        select @second = cast(v.value as datetime2(6))
        from sys.partition_functions f
        inner join sys.partition_range_values v on v.function_id = f.function_id
        where f.name = N'rowq_day'
          and v.boundary_id = 2;
        if @second is null or @second > @keep_from
            break;

        -- Partitions 1 and 2, on both sides of the first bound, are too old. They are emptied
        -- first, so that merging them moves no row. The statements fail where another session reads
        -- the archive: leave it to the next call.
        begin try
            truncate table rowq.archived with (partitions (1 to 2));
            alter partition function rowq_day() merge range (@first);
        end try
        begin catch
            break;
        end catch;
        -- A gap between two opened days is a partition too, but not a day, so it is not counted.
        if @second = dateadd(day, 1, @first)
            set @partitions_dropped += 1;
    end;
end
go
