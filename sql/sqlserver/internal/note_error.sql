set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalNoteError
    @part_id int,
    @messages rowq.message_list readonly,
    @error nvarchar(max),
    @is_waiting bit = 1,
    @noted int = null output
as
begin
-- routine   InternalNoteError
-- purpose   Store the error that messages failed with; unless it @is_waiting, not where a producer holds the row. @noted are how many that was.
-- promise   P10
-- locks     message rows, waited for or tried
-- differs   the last error stands beside the body, and not where the message waits
    set nocount on;
    -- The collation counts an emoji as one character, where others count it as two.
    declare @text nvarchar(4000) = left(@error collate Latin1_General_100_CI_AS_SC, 2000);

    if @is_waiting = 1
        update m
        set last_error = @text
        from @messages j
        inner join rowq.message m with (rowlock, xlock, forceseek)
            on m.part_id = @part_id
           and m.message_id = j.message_id
        option (loop join, force order, maxdop 1, keepfixed plan);
    else
        update m
        set last_error = @text
        from @messages j
        inner join rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            on m.part_id = @part_id
           and m.message_id = j.message_id
        option (loop join, force order, maxdop 1, keepfixed plan);
    set @noted = @@rowcount;
end
go
