set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPushReady
    @part_id int,
    @messages rowq.message_list readonly,
    @is_front bit = 0,
    @spent smallint = 0
as
begin
-- routine   InternalPushReady
-- purpose   Append messages to their lanes, or to the front of their priority, @spent attempts fewer.
-- promise   P02 P09 P14 P36
-- locks     new ready and expiry rows
    set nocount on;
    declare @seq bigint = datediff_big(microsecond, '19700101', sysutcdatetime());
    declare @placed rowq.message_list;

    -- The clock stands still for up to 16 milliseconds, and message_id decides between messages of
    -- one moment. So a message gets a later moment than the one before it only if its number is
    -- lower: more of them would lie behind what comes in while the clock stands still.
    insert into @placed (message_id, lane, place, attempt)
    select h.message_id, h.to_lane,
           @seq + sum(iif(h.last_id > h.message_id, 1, 0)) over (
               partition by h.to_lane
               order by h.lane, h.place, h.message_id
               rows unbounded preceding
           ),
           h.attempt - @spent
    from (
        select l.message_id, l.lane, l.place, l.attempt, l.to_lane,
               lag(l.message_id) over (
                   partition by l.to_lane
                   order by l.lane, l.place, l.message_id
               ) as last_id
        from (
            select j.message_id, j.lane, j.place, j.attempt,
                   iif(@is_front = 1, j.lane / 2 * 2, j.lane) as to_lane
            from @messages j
        ) l
    ) h
    option (maxdop 1, keepfixed plan);
    insert into rowq.ready with (rowlock) (part_id, lane, seq, message_id, attempt)
    select @part_id, p.lane, p.place, p.message_id, p.attempt
    from @placed p
    option (maxdop 1, keepfixed plan);
    exec rowq.InternalNoteExpiry @part_id, @placed, @is_ready = 1;
end
go
