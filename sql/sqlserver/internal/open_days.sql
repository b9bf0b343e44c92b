set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalOpenDays
with execute as owner
as
begin
-- routine   InternalOpenDays
-- version   1
-- purpose   Split today and the next two days off the empty end of the archive.
-- promise   P19
-- locks     the archive, for a moment, waiting for a second at most
-- commits   never; call it outside transactions
-- errors    none
-- differs   PostgreSQL makes the partition of a day in the transaction that needs it
    set nocount on;
    set xact_abort off;
    set lock_timeout 1000;
    declare @day datetime2(6) = cast(sysutcdatetime() as date);
    declare @last datetime2(6) = dateadd(day, 2, @day);

    while @day <= @last
    begin
        -- Whoever reads the archive keeps its shape; another maintain may have been faster.
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
        set @day = dateadd(day, 1, @day);
    end;
end
go
