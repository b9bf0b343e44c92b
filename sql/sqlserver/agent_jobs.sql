-- Optional: creates two jobs of SQL Server Agent for this database. The first runs Maintain without
-- a result set; it is needed only if no rowq worker runs. The second rebuilds indexes. Run this in
-- rowq's database as a member of sysadmin; a second run recreates the jobs. On Azure SQL Database
-- use elastic jobs instead.
--
-- A job that starts every few seconds would fill the Agent's history, so this one runs for an hour
-- and restarts within a minute. An error in a queue does not stop it: the job fails at the end of
-- the hour. On a secondary replica it does nothing. A sysadmin's job has all rights on the server,
-- so it calls rowq as rowq_owner: code that the database's owner put into rowq gets only those
-- rights.
set quoted_identifier on;
set ansi_nulls on;
go
set nocount on;
set xact_abort on;
declare @database sysname = db_name();
declare @maintain nvarchar(200) = concat(N'rowq maintain: ', db_name());
declare @rebuild nvarchar(200) = concat(N'rowq rebuild indexes: ', db_name());
declare @maintain_step nvarchar(max) = replace(replace(N'
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
declare @rebuild_step nvarchar(max) = replace(replace(N'
declare @call nvarchar(200) = N''execute as user = N''''rowq_owner'''';''
    + N'' exec rowq.RebuildIndexes @min_pages = 1000, @max_seconds = 3600;'';
if coalesce(sys.fn_hadr_is_primary_replica({name}), 1) = 1
    exec {database}.sys.sp_executesql @call;
', N'{name}', concat(N'N', quotename(@database, N''''))), N'{database}', quotename(@database));

begin try
    begin transaction;
    if exists (select 1 from msdb.dbo.sysjobs_view j where j.name = @maintain)
        exec msdb.dbo.sp_delete_job @job_name = @maintain, @delete_unused_schedule = 1;
    if exists (select 1 from msdb.dbo.sysjobs_view j where j.name = @rebuild)
        exec msdb.dbo.sp_delete_job @job_name = @rebuild, @delete_unused_schedule = 1;

    -- The steps start in master: a secondary's database may not be readable.
    exec msdb.dbo.sp_add_job
        @job_name = @maintain,
        @description = N'Maintain the queues every second.';
    exec msdb.dbo.sp_add_jobstep
        @job_name = @maintain, @step_name = N'maintain', @subsystem = N'TSQL',
        @database_name = N'master', @command = @maintain_step;
    -- Every day (freq_type 4), every minute (freq_subday_type 4), one run at a time.
    exec msdb.dbo.sp_add_jobschedule
        @job_name = @maintain, @name = N'rowq: every minute', @freq_type = 4, @freq_interval = 1,
        @freq_subday_type = 4, @freq_subday_interval = 1;
    exec msdb.dbo.sp_add_jobserver @job_name = @maintain, @server_name = N'(local)';

    exec msdb.dbo.sp_add_job
        @job_name = @rebuild,
        @description = N'Rebuild worn indexes every night.';
    exec msdb.dbo.sp_add_jobstep
        @job_name = @rebuild, @step_name = N'rebuild indexes', @subsystem = N'TSQL',
        @database_name = N'master', @command = @rebuild_step;
    -- Every day, once (freq_subday_type 1), at 03:10 by the server's clock.
    exec msdb.dbo.sp_add_jobschedule
        @job_name = @rebuild, @name = N'rowq: every night', @freq_type = 4, @freq_interval = 1,
        @freq_subday_type = 1, @active_start_time = 31000;
    exec msdb.dbo.sp_add_jobserver @job_name = @rebuild, @server_name = N'(local)';
    commit transaction;
end try
begin catch
    if @@trancount > 0
        rollback transaction;
    throw;
end catch;
go
