set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalMoveFloor
    @part_id int,
    @lane smallint,
    @from bigint,
    @to bigint
as
begin
-- routine   InternalMoveFloor
-- purpose   Move the floor of a lane down, or up if it still is where the caller saw it.
-- promise   P13 P14
-- locks     the row of the lane, and to go up the one of the guests; passed over when locked
-- differs   PostgreSQL keeps floors in a ledger, as its readers walk dead versions
    set nocount on;
    declare @callers_lane smallint;

    -- A guest may have taken rows that a rollback would put back below the new floor. So a floor
    -- moves up only if no guest holds lane -22; otherwise @callers_lane stays null.
    if @to > @from
        select @callers_lane = l.lane
        from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where l.part_id = @part_id
          and l.lane = -22 /* callers */;

    -- Skip a locked row: its session is already moving the floor or opening the lane.
    update l
    set floor = @to
    from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where l.part_id = @part_id
      and l.lane = @lane
      and (l.floor > @to or l.floor = @from and @callers_lane is not null);
end
go
