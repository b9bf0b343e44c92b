set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalParseCronValue
    @word nvarchar(200),
    @low int,
    @words nvarchar(60),
    @value int output
as
begin
-- routine   InternalParseCronValue
-- purpose   Return the value of a number or a name in a cron expression, and -1 for anything else. @words are names of three letters for the values from @low on.
-- differs   no such helper elsewhere: part of internal_parse_cron_field
    set nocount on;
    declare @place int = charindex(@word collate Latin1_General_100_BIN2, @words);
    set @value = case
        when @word collate Latin1_General_100_BIN2 like N'[0-9]'
            or @word collate Latin1_General_100_BIN2 like N'[0-9][0-9]'
            then cast(@word as int)
        when @word collate Latin1_General_100_BIN2 like N'[a-z][a-z][a-z]' and @place % 4 = 1
            then @low + @place / 4
        else -1
    end;
end
go
