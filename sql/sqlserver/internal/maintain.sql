set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalMaintain
    @part_id int,
    @limit int,
    @elected bit output,
    @promoted int output,
    @reaped int output,
    @died int output,
    @archived int output,
    @purged int output,
    @partitions_dropped int output
as
begin
-- routine   InternalMaintain
-- version   1
-- purpose   Housekeeping of one queue by the one session that is elected for it.
-- promise   P09 P11 P13 P14 P19
-- locks     the application lock rowq.maintain.<part_id>, tried; of a guest till its end
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701
-- differs   nothing
    set nocount on;
    set xact_abort off;
    declare @lock nvarchar(255) = concat(N'rowq.maintain.', @part_id);
    declare @owner nvarchar(32) = iif(@@trancount = 0, N'Session', N'Transaction');
    declare @turn int;
    set @promoted = 0;
    set @reaped = 0;
    set @died = 0;
    set @archived = 0;
    set @purged = 0;
    set @partitions_dropped = 0;

    exec @turn = sys.sp_getapplock
        @Resource = @lock, @LockMode = 'Exclusive', @LockOwner = @owner, @LockTimeout = 0;
    set @elected = iif(@turn >= 0, 1, 0);
    if @elected = 0
        return;
    begin try
        exec rowq.InternalKeepHouse
            @part_id, @limit, @promoted output, @reaped output, @died output;
        exec rowq.InternalKeepArchive
            @part_id, @limit, @archived output, @purged output, @partitions_dropped output;
        if @owner = N'Session'
            exec sys.sp_releaseapplock @Resource = @lock, @LockOwner = 'Session';
    end try
    begin catch
        if @owner = N'Session'
            exec sys.sp_releaseapplock @Resource = @lock, @LockOwner = 'Session';
        throw;
    end catch;
end
go
