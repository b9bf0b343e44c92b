set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPushDead
    @part_id int,
    @messages rowq.message_list readonly,
    @error nvarchar(max)
as
begin
-- routine   InternalPushDead
-- version   1
-- purpose   Keep messages as dead with the last error; their dedup keys are free again.
-- promise   P10 P12
-- locks     new dead rows; message rows; dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    set nocount on;
    insert into rowq.dead with (rowlock) (part_id, message_id, lane, attempt, died_at)
    select @part_id, j.message_id, j.lane, j.attempt, sysutcdatetime()
    from @messages j
    option (maxdop 1);

    exec rowq.InternalNoteError @part_id, @messages, @error;
    exec rowq.InternalReleaseDedupKeys @part_id, @messages;
end
go
