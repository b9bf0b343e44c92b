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

    insert into rowq.ready with (rowlock) (part_id, lane, seq, message_id, attempt)
    select @part_id, iif(@is_front = 1, j.lane / 2 * 2, j.lane),
           @seq + row_number() over (order by j.lane, j.place, j.message_id), j.message_id,
           j.attempt - @spent
    from @messages j
    option (maxdop 1);
    exec rowq.InternalNoteExpiry @part_id, @messages, @seq, @is_front;
end
go
