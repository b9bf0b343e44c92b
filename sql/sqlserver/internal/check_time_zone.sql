set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckTimeZone
    @time_zone nvarchar(max),
    @windows_name nvarchar(128) output
as
begin
-- routine   InternalCheckTimeZone
-- purpose   Refuse a time zone that neither the server nor the table time_zone knows by this name; @windows_name is the server's name of it.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @name nvarchar(128) = @time_zone;
    declare @fault nvarchar(400);

    -- A longer text would be cut off above, and could look like a name.
    if datalength(@time_zone) <= 256
        exec rowq.InternalWindowsZone @name, @windows_name output;
    else
        set @windows_name = null;
    -- The name is compared by its bytes, and its length too, because trailing blanks are ignored.
    if not exists (
        select 1
        from sys.time_zone_info z
        where z.name collate Latin1_General_100_BIN2 = @windows_name
          and datalength(z.name) = datalength(@windows_name)
    )
    begin
        -- An old Windows lacks zones that newer ones have.
        set @fault = iif(
            @windows_name <> @name,
            concat(
                N'time_zone ', left(@time_zone, 100), N' is ', @windows_name,
                N' here, which this server does not have: update its operating system'
            ),
            null
        );
        set @fault = coalesce(@fault, concat(
            N'time_zone must be a name such as Europe/Berlin that the server knows, got ',
            coalesce(left(@time_zone, 100), N'null')
        ));
        exec rowq.InternalRefuse @fault;
    end;
end
go
