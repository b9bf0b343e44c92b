set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPurgeStarted
    @part_id int,
    @seconds float,
    @limit int,
    @owns_transaction bit
as
begin
-- routine   InternalPurgeStarted
-- purpose   Delete up to @limit notes of deliveries that began more than @seconds ago.
-- promise   P13 P29
-- locks     started rows, passing over locked ones; lane -5, tried
    set nocount on;
    declare @floor bigint;
    declare @is_open bit;
    declare @since datetime2(6);
    declare @before datetime2(6) = dateadd(
        microsecond, -cast(round((@seconds - floor(@seconds)) * 1e6, 0) as int),
        dateadd(second, -cast(floor(@seconds) as int), sysutcdatetime())
    );

    select @floor = l.floor, @is_open = l.is_open
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -5 /* started */;
    exec rowq.InternalFromMicroseconds @floor, @since output;
    with head as (
        select top (@limit) s.part_id, s.started_at, s.claim_id
        from rowq.started s with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where s.part_id = @part_id
          and s.started_at >= @since
          and s.started_at < @before
        order by s.started_at, s.claim_id
    )
    delete from head
    option (maxdop 1, keepfixed plan);

    -- From now on maintain keeps the floor.
    if @is_open = 0 and @owns_transaction = 1
        update l
        set is_open = 1
        from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where l.part_id = @part_id
          and l.lane = -5 /* started */;
end
go
