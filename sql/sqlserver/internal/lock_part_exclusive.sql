set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalLockPartExclusive
    @part_id int,
    @queue_name nvarchar(max)
as
begin
-- routine   InternalLockPartExclusive
-- purpose   Lock a queue against all calls that add or move messages; raise an error if it stays in use for a second.
-- promise   P02 P15
-- locks     the row of the part, for itself
-- errors    RQ701 RQ705
-- differs   elsewhere drop_queue locks a table, or waits at once for all of a second
    set nocount on;
    set xact_abort off;
    set lock_timeout 20;
    declare @tries_left int = 10;
    declare @pause char(12) = '00:00:00.080';
    declare @found_part_id int;

    -- Everybody who comes later waits behind a session that waits for this lock. So wait for a
    -- moment only, and let the others through before the next try.
    while 1 = 1
    begin
        begin try
            -- @found_part_id stays null if another session has dropped the queue.
            select @found_part_id = p.part_id
            from rowq.part p with (rowlock, xlock, forceseek)
            where p.part_id = @part_id;
            break;
        end try
        begin catch
            -- 1222 means that lock_timeout has ended the wait.
            if error_number() <> 1222
                throw;
        end catch;
        set @tries_left -= 1;
        if @tries_left = 0
            throw 52705, N'RQ705 queue_busy: open transactions hold the queue; try again', 1;
        waitfor delay @pause;
    end;
    if @found_part_id is null
        exec rowq.InternalRefuseQueue @queue_name;
end
go
