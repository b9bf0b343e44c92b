set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalMaintainDelivery
    @part_id int,
    @limit int,
    @elected bit output,
    @promoted int output,
    @reaped int output,
    @died int output
as
begin
-- routine   InternalMaintainDelivery
-- version   1
-- purpose   The part of maintain that deliveries wait for, by the one session elected for it: floors, promoting, reaping.
-- promise   P09 P11 P13 P14
-- locks     the part, shared; a row of lane, passed over when locked; as promote, reap
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @is_saved bit = 0;
    declare @tries_left int = 5;
    declare @begun nvarchar(100);
    declare @queue_name nvarchar(200);
    declare @max_attempts int;
    declare @turn smallint;

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

            if @owns_transaction = 1
                begin transaction;
            set @max_attempts = null;
            select @max_attempts = q.max_attempts, @queue_name = q.queue_name
            from rowq.queue q
            where q.part_id = @part_id;
            set @queue_name = coalesce(@queue_name, N'');
            exec rowq.InternalLockPartShared @part_id, @queue_name;
            set @promoted = 0;
            set @reaped = 0;
            set @died = 0;
            -- A row and not a lock by name, which every user of the database could hold.
            set @turn = null;
            select @turn = l.lane
            from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where l.part_id = @part_id
              and l.lane = -5;
            set @elected = iif(@turn is null, 0, 1);
            if @elected = 0
            begin
                if @owns_transaction = 1
                    commit transaction;
                break;
            end;

            if @owns_transaction = 0
            begin
                save transaction rowq_call;
                set @is_saved = 1;
            end;
            -- First the floors of what is read below, so that what was committed late is found.
            exec rowq.InternalRescanFloors @part_id;
            exec rowq.InternalPromote @part_id, @limit, @owns_transaction, @promoted output;
            exec rowq.InternalReap
                @part_id, @max_attempts, @limit, @reaped output, @died output;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;
            else if @is_saved = 1 and xact_state() = 1
                rollback transaction rowq_call;

            -- The victim of a deadlock, with nothing else to lose, begins again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;
end
go
