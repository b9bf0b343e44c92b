set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalWindowsZone
    @time_zone nvarchar(128),
    @windows_name nvarchar(128) output
as
begin
-- routine   InternalWindowsZone
-- purpose   Return the name that the server has for a time zone: that of Windows for an IANA name, and any other one as it is.
-- differs   no such helper elsewhere, where the server knows IANA names
    set nocount on;
    set @windows_name = @time_zone;
    select @windows_name = z.windows_name
    from rowq.time_zone z
    where z.iana_name = @time_zone
      and datalength(z.iana_name) = datalength(@time_zone);
end
go
