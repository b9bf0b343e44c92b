set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalLockPartShared
    @part_id int,
    @queue_name nvarchar(max)
as
begin
-- routine   InternalLockPartShared
-- version   1
-- purpose   Keep a queue from being dropped while messages are added or moved.
-- promise   P01 P02
-- locks     the row of the part, shared, to the end of the transaction; waits for a drop
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   on PostgreSQL the first insert waits for a drop
    set nocount on;
    declare @found_part_id int;
    select @found_part_id = p.part_id
    from rowq.part p with (rowlock, repeatableread, forceseek)
    where p.part_id = @part_id;
    if @found_part_id is null
        exec rowq.InternalRefuseQueue @queue_name;
end
go
