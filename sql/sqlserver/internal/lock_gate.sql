set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalLockGate
    @part_id int,
    @is_locked bit output
as
begin
-- routine   InternalLockGate
-- purpose   Lock the gate of a limited queue; return whether that was done in a tenth of a second.
-- promise   P28 P29
-- locks     the gate of the queue, tried for a tenth of a second
    set nocount on;
    declare @tries_left int = 10;
    declare @pause char(12) = '00:00:00.010';
    declare @gate int;

    while 1 = 1
    begin
        select @gate = g.part_id
        from rowq.gate g with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where g.part_id = @part_id
        option (maxdop 1, keepfixed plan);
        if @gate is not null or @tries_left = 0
            break;
        set @tries_left -= 1;
        waitfor delay @pause;
    end;
    set @is_locked = iif(@gate is null, 0, 1);
end
go
