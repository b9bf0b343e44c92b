-- Runs first in every install, upgrade and rollback: lets one in at a time, for as long as its
-- session lasts, and refuses here, before anything is changed, what would go wrong later.
-- Read committed: who waited for the lock must see what the one before has installed.
set ansi_nulls, ansi_padding, ansi_warnings, arithabort, concat_null_yields_null,
    nocount, quoted_identifier, xact_abort on;
set numeric_roundabort off;
set transaction isolation level read committed;
-- What follows waits for tables in use; while it waits, everybody else waits behind it.
set lock_timeout 10000;
go
-- In what is thrown %% stands for %.
declare @message nvarchar(2000), @result int;

-- RQ801: string_agg and trim need SQL Server 2017, that is compatibility level 140. Azure
-- calls itself version 12 for ever.
if cast(serverproperty('EngineEdition') as int) not in (5, 8)
    and cast(serverproperty('ProductMajorVersion') as int) < 14
begin
    set @message = concat(
        N'RQ801 server_too_old: rowq needs SQL Server 2017 or newer; this is ',
        cast(serverproperty('ProductVersion') as nvarchar(128))
    );
    throw 52801, @message, 1;
end;

select @message = concat(
    N'RQ801 server_too_old: rowq needs a compatibility level of 140 or more; database ',
    d.name, N' has ', d.compatibility_level, nchar(10),
    N'A DBA can run: alter database ', quotename(d.name), N' set compatibility_level = 140;'
)
from sys.databases d
where d.name = db_name()
  and d.compatibility_level < 140;
if @message is not null
begin
    set @message = replace(@message, N'%', N'%%');
    throw 52801, @message, 1;
end;

exec @result = sp_getapplock
    @Resource = N'rowq.migrate', @LockMode = N'Exclusive', @LockOwner = N'Session',
    @LockTimeout = 60000;
if @result < 0
begin
    set @message = concat(
        N'RQ806 migration_busy: another migration has not ended for 60 seconds', nchar(10),
        N'Try again.'
    );
    throw 52806, @message, 1;
end;

-- RQ802: a schema rowq that rowq did not make; an empty one, or one with nothing but bookkeeping,
-- is a beginning of ours.
if exists (select 1 from sys.objects o where o.schema_id = schema_id(N'rowq'))
    and (
        select count(*)
        from sys.tables t
        where t.schema_id = schema_id(N'rowq')
          and t.name in (N'meta', N'queue', N'part')
    ) < 3
    and (
        select count(*)
        from sys.tables t
        join sys.columns c on c.object_id = t.object_id
        where t.schema_id = schema_id(N'rowq')
          and t.name in (N'migration', N'migration_log')
          and c.name = N'migration_hash'
    ) < 2
begin
    exec sp_releaseapplock @Resource = N'rowq.migrate', @LockOwner = N'Session';
    set @message = concat(
        N'RQ802 foreign_schema: database ', db_name(), N' has a schema rowq that rowq did not make',
        nchar(10), N'It was left alone. Use another database.'
    );
    set @message = replace(@message, N'%', N'%%');
    throw 52802, @message, 1;
end;

-- RQ803: a schema, tables, procedures, partitions, roles and their rights take the whole database.
if has_perms_by_name(quotename(db_name()), N'DATABASE', N'CONTROL') = 0
begin
    exec sp_releaseapplock @Resource = N'rowq.migrate', @LockOwner = N'Session';
    set @message = concat(
        N'RQ803 missing_privilege: ', user_name(), N' is no owner of database ', db_name(),
        nchar(10), N'A DBA must run: alter role db_owner add member ', quotename(user_name()), N';'
    );
    set @message = replace(@message, N'%', N'%%');
    throw 52803, @message, 1;
end;
