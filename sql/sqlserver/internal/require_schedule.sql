set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRequireSchedule
    @part_id int,
    @schedule_name nvarchar(max),
    @schedule_key varbinary(402) output
as
begin
-- routine   InternalRequireSchedule
-- purpose   Return the key of a schedule and hold it to the end of the transaction; raise an error if there is none.
-- promise   P15
-- locks     the schedule row
-- errors    RQ702 RQ711
    set nocount on;
    declare @key varbinary(402);
    declare @text nvarchar(2048) = concat(
        N'RQ702 schedule_not_found: ', left(@schedule_name, 100)
    );
    set @schedule_key = null;
    if @schedule_name is null
        exec rowq.InternalRefuse N'schedule_name is missing';

    -- A longer text is no name of a schedule, but the conversion below would cut it off, and it
    -- could look like one.
    if datalength(@schedule_name) <= 400
    begin
        set @key = convert(varbinary(402), @schedule_name + N'.');
        select @schedule_key = s.schedule_key
        from rowq.schedule s with (rowlock, xlock, readcommittedlock, forceseek)
        where s.part_id = @part_id
          and s.schedule_key = @key
        option (maxdop 1, keepfixed plan);
    end;
    if @schedule_key is null
    begin
        -- throw reads %% as %, so each % of the text is doubled.
        set @text = replace(@text, N'%', N'%%');
        throw 52702, @text, 1;
    end;
end
go
