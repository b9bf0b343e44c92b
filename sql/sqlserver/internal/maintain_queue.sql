set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalMaintainQueue
    @part_id int,
    @is_named bit,
    @batch_size int,
    @until datetime2(6),
    @elected bit output,
    @promoted int output,
    @reaped int output,
    @died int output,
    @expired int output,
    @archived int output,
    @purged int output,
    @dropped int output
as
begin
-- routine   InternalMaintainQueue
-- purpose   Run all parts of maintain for one queue. @elected is null if the queue is gone, which is an error only if @is_named is 1.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P32 P36 P37
-- locks     as InternalMaintainDelivery, InternalRunSchedules, InternalMaintainArchive and
--           InternalMaintainKept
-- commits   its own transactions where the caller has none; never the caller's
-- errors    RQ701
    set nocount on;
    set xact_abort off;
    declare @has_due bit;
    declare @more int;
    -- Results leave history half of the time for more than one batch.
    declare @until_results datetime2(6) = dateadd(millisecond, -50, @until);
    set @archived = 0;
    set @purged = 0;
    set @dropped = 0;

    begin try
        exec rowq.InternalMaintainDelivery
            @part_id, @batch_size, @elected output, @promoted output, @reaped output,
            @died output, @expired output, @has_due output;
        if @elected = 1 and @has_due = 1
            exec rowq.InternalRunSchedules @part_id;
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
    end try
    begin catch
        if @is_named = 1 or error_number() <> 52701
            throw;
        set @elected = null;
    end catch;
end
go
