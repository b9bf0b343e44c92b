set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalOpenDays
    @part_id int
with execute as owner
as
begin
-- routine   InternalOpenDays
-- purpose   Split off the archive today, the next two days, and each earlier day that has finished messages waiting.
-- promise   P19
-- locks     the archive, for a moment, waiting for a second at most
-- commits   never; call it outside transactions
-- differs   PostgreSQL makes the partition of a day in the transaction that needs it
    set nocount on;
    set xact_abort off;
    set lock_timeout 1000;
    declare @today datetime2(6) = cast(sysutcdatetime() as date);
    declare @day datetime2(6);
    declare @floor bigint;
    declare @since datetime2(6);
    declare @first datetime2(6);
    declare @days table (day datetime2(6) not null primary key);

    insert into @days (day)
    values (@today), (dateadd(day, 1, @today)), (dateadd(day, 2, @today));

    -- Messages that were finished before today are still here if nobody has archived for a while.
    -- Each round of this loop finds the next such day.
    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -3 /* finished */;
    exec rowq.InternalFromMicroseconds @floor, @since output;
    while 1 = 1
    begin
        set @first = null;
        select top (1) @first = f.finished_at
        from rowq.finished f with (readuncommitted, forceseek)
        where f.part_id = @part_id
          and f.finished_at >= @since
        order by f.finished_at, f.message_id
        option (maxdop 1, keepfixed plan);
        if @first is null or @first >= @today
            break;

        -- Open the day and the one after it, because only a partition between two bounds is a day
        -- that can be dropped.
        set @day = cast(@first as date);
        set @since = dateadd(day, 1, @day);
        insert into @days (day)
        select v.day
        from (values (@day), (@since)) v (day)
        where not exists (select 1 from @days d where d.day = v.day);
    end;

    while 1 = 1
    begin
        set @day = null;
        select top (1) @day = d.day from @days d order by d.day;
        if @day is null
            break;
        delete from @days where day = @day;

        -- The statement fails where another session reads the archive, or where another maintain
        -- was faster: leave it to the next call.
        begin try
            if not exists (
                select 1
                from sys.partition_functions f
                inner join sys.partition_range_values v on v.function_id = f.function_id
                where f.name = N'rowq_day'
                  and cast(v.value as datetime2(6)) = @day
            )
            begin
                alter partition scheme rowq_day next used [PRIMARY];
                alter partition function rowq_day() split range (@day);
            end;
        end try
        begin catch
            return;
        end catch;
    end;
end
go
