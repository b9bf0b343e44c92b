set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPushDelayed
    @part_id int,
    @messages rowq.message_list readonly,
    @error nvarchar(max)
as
begin
-- routine   InternalPushDelayed
-- purpose   Let messages wait for their due_at; those that are due are ready at once.
-- promise   P10 P11 P36
-- locks     message rows, waited for; new delayed, ready and expiry rows
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @text nvarchar(4000) = left(@error collate Latin1_General_100_CI_AS_SC, 2000);
    declare @due rowq.message_list;

    update m
    set last_error = @text, due_at = j.due_at
    from @messages j
    inner join rowq.message m with (rowlock, forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);

    insert into rowq.delayed with (rowlock) (part_id, due_at, message_id, lane, attempt)
    select @part_id, j.due_at, j.message_id, j.lane, j.attempt
    from @messages j
    where j.due_at > @now
    option (maxdop 1, keepfixed plan);
    -- One that is ready at once has another note after this one, which counts.
    exec rowq.InternalNoteExpiry @part_id, @messages;

    insert into @due (message_id, lane, place, attempt)
    select j.message_id, j.lane, j.place, j.attempt
    from @messages j
    where j.due_at <= @now;
    if @@rowcount > 0
        exec rowq.InternalPushReady @part_id, @due;
end
go
