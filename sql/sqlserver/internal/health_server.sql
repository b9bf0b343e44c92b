set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalHealthServer
    @seconds float output,
    @detail nvarchar(500) output
as
begin
-- routine   InternalHealthServer
-- purpose   Return the age and the session of the oldest transaction of this database.
-- differs   this engine's own
    set nocount on;
    declare @session_id int;
    declare @database nvarchar(300) = quotename(db_name());
    -- Azure SQL requires a right on the database here, and a server requires one on the server. The
    -- narrower rights came with SQL Server 2022; an older server returns null for them.
    declare @may_look int = iif(
        cast(serverproperty('EngineEdition') as int) = 5,
        coalesce(
            nullif(has_perms_by_name(@database, N'DATABASE', N'VIEW DATABASE STATE'), 0),
            has_perms_by_name(@database, N'DATABASE', N'VIEW DATABASE PERFORMANCE STATE'), 0
        ),
        coalesce(
            nullif(has_perms_by_name(null, null, N'VIEW SERVER STATE'), 0),
            has_perms_by_name(null, null, N'VIEW SERVER PERFORMANCE STATE'), 0
        )
    );
    set @seconds = 0;
    set @detail = N'unknown: the caller may not see other sessions (VIEW SERVER STATE)';
    if @may_look = 0
        return;

    begin try
        select top (1) @session_id = o.session_id, @seconds = o.seconds
        from (
            select s.session_id,
                   -- transaction_begin_time is in the time zone of the machine, so compare it with
                   -- the local time.
                   cast(
                       datediff(
                           second, t.transaction_begin_time,
                           cast(sysdatetimeoffset() as datetime2(3))
                       ) as float
                   ) as seconds
            from sys.dm_tran_active_transactions t
            inner join sys.dm_tran_session_transactions s on s.transaction_id = t.transaction_id
            inner join sys.dm_tran_database_transactions d on d.transaction_id = t.transaction_id
            where d.database_id = db_id()
            union all
            select v.session_id, cast(v.elapsed_time_seconds as float)
            from sys.dm_tran_active_snapshot_database_transactions v
        ) o
        where o.session_id <> @@spid
        order by o.seconds desc;
        set @detail = iif(
            @session_id is null or @seconds < 1,
            N'no transaction is older than a second',
            concat(
                N'session ', @session_id, N' keeps row versions and ghosts from being cleaned up;',
                N' rowq stays fast, other tables grow'
            )
        );
    end try
    begin catch
        -- The smaller tiers of Azure SQL show these views to the server's administrator only.
        if xact_state() = -1
            throw;
        set @seconds = 0;
        set @detail = concat(N'unknown: ', left(error_message(), 400));
    end catch;
end
go
