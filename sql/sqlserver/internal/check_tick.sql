set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckTick
    @part_id int,
    @schedule_key varbinary(402)
as
begin
-- routine   InternalCheckTick
-- purpose   Refuse a tick of a schedule whose body has become too long, as its queue was altered, or whose time zone the server has lost.
-- promise   P15
-- errors    RQ711
-- differs   elsewhere that comes up on the way: here it must be known before the call writes
    set nocount on;
    declare @body nvarchar(max);
    declare @body_binary varbinary(max);
    declare @max_body_length int;
    declare @time_zone nvarchar(max);
    declare @windows_name nvarchar(128);

    select @time_zone = s.time_zone
    from rowq.schedule s with (forceseek)
    where s.part_id = @part_id
      and s.schedule_key = @schedule_key
    option (maxdop 1, keepfixed plan);
    exec rowq.InternalCheckTimeZone @time_zone, @windows_name output;

    -- Most bodies are short enough, and are not read.
    select @body = s.body, @body_binary = s.body_binary, @max_body_length = q.max_body_length
    from rowq.schedule s with (forceseek)
    inner join rowq.queue q with (forceseek) on q.part_id = s.part_id
    where s.part_id = @part_id
      and s.schedule_key = @schedule_key
      and (
          datalength(s.body) / 2 > q.max_body_length
          or datalength(s.body_binary) > q.max_body_length
      )
    option (loop join, maxdop 1, keepfixed plan);
    if @@rowcount > 0
        exec rowq.InternalCheckBody @body, @body_binary, @max_body_length;
end
go
