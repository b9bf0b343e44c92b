-- Optional: this makes two jobs of SQL Server Agent for this database. The first one does what
-- Maintain does, without a result set each second. You need it only where no rowq worker runs,
-- because workers call Maintain themselves.
-- The second one cares for the indexes. Run this in rowq's database as a member of sysadmin; a
-- second run makes the jobs anew. Azure SQL Database has no Agent: use elastic jobs there.
--
-- A job that is started every few seconds would push all others out of the Agent's history. So this
-- one runs for an hour, and its schedule starts it again within a minute. An error in a queue does
-- not end it before: the job fails at the end of the hour. On a secondary replica it does nothing.
-- A job of a member of sysadmin has all rights on the server. So it calls rowq as rowq_owner, and
-- what the database's owner may have put into rowq runs with these rights only.
set quoted_identifier on;
set ansi_nulls on;
go
set nocount on;
set xact_abort on;
declare @database sysname = db_name();
declare @house nvarchar(200) = concat(N'rowq maintain: ', db_name());
declare @indexes nvarchar(200) = concat(N'rowq care for indexes: ', db_name());
declare @house_step nvarchar(max) = replace(replace(N'
declare @until datetime2(0) = dateadd(hour, 1, sysutcdatetime());
declare @call nvarchar(200) = N''execute as user = N''''rowq_owner'''';''
    + N'' exec rowq.InternalMaintain @queue_name = null, @batch_size = 1000, @is_quiet = 1;'';
declare @error nvarchar(2048);
while sysutcdatetime() < @until
begin
    begin try
        if coalesce(sys.fn_hadr_is_primary_replica({name}), 1) = 1
            exec {database}.sys.sp_executesql @call;
    end try
    begin catch
        set @error = replace(error_message(), N''%'', N''%%'');
    end catch;
    waitfor delay ''00:00:01'';
end;
if @error is not null
    throw 50000, @error, 1;
', N'{name}', concat(N'N', quotename(@database, N''''))), N'{database}', quotename(@database));
declare @indexes_step nvarchar(max) = replace(replace(N'
declare @call nvarchar(200) = N''execute as user = N''''rowq_owner'''';''
    + N'' exec rowq.RebuildIndexes @min_pages = 1000, @max_seconds = 3600;'';
if coalesce(sys.fn_hadr_is_primary_replica({name}), 1) = 1
    exec {database}.sys.sp_executesql @call;
', N'{name}', concat(N'N', quotename(@database, N''''))), N'{database}', quotename(@database));

begin try
    begin transaction;
    if exists (select 1 from msdb.dbo.sysjobs_view j where j.name = @house)
        exec msdb.dbo.sp_delete_job @job_name = @house, @delete_unused_schedule = 1;
    if exists (select 1 from msdb.dbo.sysjobs_view j where j.name = @indexes)
        exec msdb.dbo.sp_delete_job @job_name = @indexes, @delete_unused_schedule = 1;

    -- The steps begin in master, because a secondary's database may not be open to anybody.
    exec msdb.dbo.sp_add_job
        @job_name = @house,
        @description = N'Delayed messages, expired leases, archive: once a second.';
    exec msdb.dbo.sp_add_jobstep
        @job_name = @house, @step_name = N'maintain', @subsystem = N'TSQL',
        @database_name = N'master', @command = @house_step;
    -- freq_type 4 with interval 1 means every day, and freq_subday_type 4 with interval 1 means
    -- each minute. The Agent starts no second run while one goes on.
    exec msdb.dbo.sp_add_jobschedule
        @job_name = @house, @name = N'rowq: each minute', @freq_type = 4, @freq_interval = 1,
        @freq_subday_type = 4, @freq_subday_interval = 1;
    exec msdb.dbo.sp_add_jobserver @job_name = @house, @server_name = N'(local)';

    exec msdb.dbo.sp_add_job
        @job_name = @indexes,
        @description = N'Indexes that traffic has worn out: every night.';
    exec msdb.dbo.sp_add_jobstep
        @job_name = @indexes, @step_name = N'care for indexes', @subsystem = N'TSQL',
        @database_name = N'master', @command = @indexes_step;
    -- freq_type 4 with interval 1 means every day, and freq_subday_type 1 means once, here at 03:10
    -- by the server's clock.
    exec msdb.dbo.sp_add_jobschedule
        @job_name = @indexes, @name = N'rowq: every night', @freq_type = 4, @freq_interval = 1,
        @freq_subday_type = 1, @active_start_time = 31000;
    exec msdb.dbo.sp_add_jobserver @job_name = @indexes, @server_name = N'(local)';
    commit transaction;
end try
begin catch
    if @@trancount > 0
        rollback transaction;
    throw;
end catch;
go
