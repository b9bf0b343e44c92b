set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalOpenLanes
    @part_id int,
    @lane smallint
as
begin
-- routine   InternalOpenLanes
-- purpose   Let dequeue look into a lane and its front companion.
-- promise   P02
-- locks     the rows of the two lanes, passed over when locked
    set nocount on;
    -- Skip locked rows, so that no producer waits: their session is usually opening the lanes too.
    -- If the lanes stay closed, the next maintain finds the messages and opens them.
    update l
    set is_open = 1
    from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where l.part_id = @part_id
      and l.lane in (@lane / 2 * 2, @lane / 2 * 2 + 1)
      and l.is_open = 0;
end
go
