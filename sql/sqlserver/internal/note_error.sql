set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalNoteError
    @part_id int,
    @messages rowq.message_list readonly,
    @error nvarchar(max)
as
begin
-- routine   InternalNoteError
-- purpose   Store the error that messages failed with.
-- promise   P10
-- locks     message rows
-- differs   the last error stands beside the body, and not where the message waits
    set nocount on;
    -- The collation counts an emoji as one character, where others count it as two.
    declare @text nvarchar(4000) = left(@error collate Latin1_General_100_CI_AS_SC, 2000);

    update m
    set last_error = @text
    from @messages j
    inner join rowq.message m with (rowlock, forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
    option (loop join, force order, maxdop 1);
end
go
