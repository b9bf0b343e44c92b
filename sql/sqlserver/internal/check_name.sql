set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckName
    @name nvarchar(100),
    @value nvarchar(max)
as
begin
-- routine   InternalCheckName
-- purpose   Refuse a bad name of a queue or a schedule; @name is that of the parameter.
-- promise   P15
-- errors    RQ711
-- differs   elsewhere a regular expression says it
    set nocount on;
    declare @size int = len((@value + N'.') collate Latin1_General_100_CI_AS_SC) - 1;
    declare @place int = 1;
    declare @code int;
    declare @is_bad bit = iif(@size between 1 and 100, 0, 1);
    declare @fault nvarchar(200);

    -- The control characters are 0 to 31 and 127 to 159.
    while @is_bad = 0 and @place <= datalength(@value) / 2
    begin
        set @code = unicode(substring(@value collate Latin1_General_100_BIN2, @place, 1));
        set @is_bad = iif(@code between 0 and 31 or @code between 127 and 159, 1, 0);
        set @place += 1;
    end;
    if @is_bad = 1
    begin
        set @fault = concat(@name, N' must be 1 to 100 characters, none of them control');
        exec rowq.InternalRefuse @fault;
    end;
end
go
