set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalNoteExpiry
    @part_id int,
    @messages rowq.message_list readonly,
    @is_ready bit = 0
as
begin
-- routine   InternalNoteExpiry
-- purpose   Let maintain look again for those of the messages that expire. With @is_ready they are ready at their lane and place.
-- promise   P36
-- locks     new expiry rows
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @has_expiry bit = 0;

    -- maintain opens lane -6 before it forgets the first note of a queue. So a queue has no message
    -- that expires where there is no note, and after that look the lane is still closed.
    select @has_expiry = case
               when l.is_open = 1 then 1
               when e.message_id is not null then 1
               else a.is_open
           end
    from rowq.lane l with (readuncommitted, forceseek)
    outer apply (
        select top (1) x.message_id
        from rowq.expiry x with (rowlock, readpast, readcommittedlock, forceseek)
        where x.part_id = @part_id
          and l.is_open = 0
    ) e
    inner join rowq.lane a with (readuncommitted, forceseek)
        on a.part_id = @part_id
       and a.lane = -6 /* expiry */
    where l.part_id = @part_id
      and l.lane = -6 /* expiry */
    option (loop join, force order, maxdop 1, keepfixed plan);
    if @has_expiry = 0
        return;

    insert into rowq.expiry with (rowlock) (part_id, expires_at, expiry_id, message_id, lane, seq)
    select @part_id,
           case
               when m.expires_at > dateadd(day, 1, @now) then dateadd(day, 1, @now)
               when m.expires_at > @now then m.expires_at
               else @now
           end,
           next value for rowq.message_seq, j.message_id,
           iif(@is_ready = 1, j.lane, null), iif(@is_ready = 1, j.place, null)
    from @messages j
    inner join rowq.message m with (forceseek (message_pk (part_id, message_id)))
        on m.part_id = @part_id
       and m.message_id = j.message_id
    where m.expires_at is not null
    option (loop join, force order, maxdop 1, keepfixed plan);
end
go
