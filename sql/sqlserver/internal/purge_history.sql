set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPurgeHistory
    @part_id int,
    @days int,
    @limit int,
    @owns_transaction bit,
    @purged int output
as
begin
-- routine   InternalPurgeHistory
-- purpose   Delete up to @limit attempts, 1000 at most, that ended more than @days ago; @purged is how many there were.
-- promise   P13 P37
-- locks     history rows, passing over locked ones; lane -8, tried
    set nocount on;
    declare @floor bigint;
    declare @is_open bit;
    declare @since datetime2(6);
    declare @before datetime2(6) = dateadd(day, -@days, sysutcdatetime());

    select @floor = l.floor, @is_open = l.is_open
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -8 /* history */;
    exec rowq.InternalFromMicroseconds @floor, @since output;
    with head as (
        select top (@limit) h.part_id, h.ended_at, h.message_id, h.claim_id
        from rowq.history h
            with (index (history_pk), rowlock, xlock, readpast, readcommittedlock, forceseek)
        where h.part_id = @part_id
          and h.ended_at >= @since
          and h.ended_at < @before
        order by h.ended_at, h.message_id, h.claim_id
    )
    delete from head
    option (maxdop 1, keepfixed plan);
    set @purged = @@rowcount;

    -- From now on maintain keeps the floor. A queue that has purged no attempt yet needs none.
    if @purged > 0 and @is_open = 0 and @owns_transaction = 1
        update l
        set is_open = 1
        from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where l.part_id = @part_id
          and l.lane = -8 /* history */;
end
go
