-- The checks before every install, upgrade and rollback, and the migration lock of the session.
-- They refuse what would fail later or run foreign code. The isolation level is read committed,
-- because a session that waited for the lock must see the previous one's changes.
set ansi_nulls, ansi_padding, ansi_warnings, arithabort, concat_null_yields_null,
    nocount, quoted_identifier, xact_abort on;
set numeric_roundabort off;
set transaction isolation level read committed;
-- All other sessions wait behind the following statements, so their waits for tables end after 10
-- seconds.
set lock_timeout 10000;
go
-- throw reads %% as %, so each % of the text is doubled.
declare @message nvarchar(2000), @result int, @why nvarchar(600);

-- RQ801: string_agg and trim require SQL Server 2017 and compatibility level 140. Azure always
-- reports version 12, so its version is not checked.
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

-- RQ803: creating the schema, tables, procedures, partitions, roles and rights requires CONTROL of
-- the database.
if has_perms_by_name(quotename(db_name()), N'DATABASE', N'CONTROL') = 0
begin
    set @message = concat(
        N'RQ803 missing_privilege: ', user_name(), N' is not an owner of database ', db_name(),
        nchar(10), N'A DBA must run: alter role db_owner add member ', quotename(user_name()), N';'
    );
    set @message = replace(@message, N'%', N'%%');
    throw 52803, @message, 1;
end;

-- Act as dbo, without rights on the server: code of the database's owner, such as a DDL trigger,
-- must not run with a DBA's rights. Such code cannot undo this, because "revert" in a module ends
-- only the module's own impersonation.
begin try
    execute as user = N'dbo';
end try
begin catch
    -- After a restore, dbo can be an unknown login (15517) or an unreachable Windows login (15404).
    -- Do not continue as the caller, which may have rights elsewhere.
    set @message = concat(
        N'RQ803 missing_privilege: cannot act as dbo of database ', db_name(), N': ',
        left(error_message(), 600), nchar(10),
        N'A DBA must run: alter authorization on database::', quotename(db_name()),
        N' to a login of this server;'
    );
    set @message = replace(@message, N'%', N'%%');
    throw 52803, @message, 1;
end catch;

-- RQ802: in a trustworthy database of a sysadmin member, dbo has all rights on the server. Then no
-- code of the database may run, so refuse DDL triggers here.
select top (1) @message = concat(
    N'RQ802 foreign_schema: trigger ', g.name, N' would run with all rights on the server, as',
    N' database ', db_name(), N' is trustworthy', nchar(10),
    N'Disable the trigger for the migration, or run: alter database ', quotename(db_name()),
    N' set trustworthy off;'
)
from sys.triggers g
where g.parent_class_desc = N'DATABASE'
  and g.is_disabled = 0
  and has_perms_by_name(null, null, N'CONTROL SERVER') = 1;
if @message is not null
begin
    revert;
    set @message = replace(@message, N'%', N'%%');
    throw 52802, @message, 1;
end;

-- Only dbo can take this lock: any user could hold a lock of public, the default.
exec @result = sys.sp_getapplock
    @Resource = N'rowq.migrate', @LockMode = N'Exclusive', @LockOwner = N'Session',
    @LockTimeout = 60000, @DbPrincipal = N'dbo';
if @result < -1
begin
    revert;
    set @message = concat(N'sp_getapplock returned ', @result, N' for rowq.migrate');
    throw 50000, @message, 1;
end;
if @result < 0
begin
    revert;
    set @message = concat(
        N'RQ806 migration_busy: another migration is still running after 60 seconds', nchar(10),
        N'Retry when it has finished.'
    );
    throw 52806, @message, 1;
end;

-- RQ802: refuse a schema, object, role or user of rowq's names that another user owns, can
-- impersonate or change; foreign code that would run; and objects in place of tables.
select top (1) @why = f.why
from (
    select 1 as place, concat(N'schema rowq belongs to ', u.name) as why
    from sys.schemas s
    join sys.database_principals u on u.principal_id = s.principal_id
    where s.name = N'rowq'
      and u.name <> N'rowq_owner'
    union all
    select 2, concat(N'rowq.', o.name, N' belongs to ', user_name(o.principal_id))
    from sys.objects o
    where o.schema_id = schema_id(N'rowq')
      and o.parent_object_id = 0
      and o.principal_id <> user_id(N'rowq_owner')
    union all
    select 3, concat(u.name, N' is not a role of dbo')
    from sys.database_principals u
    where u.name in (N'rowq_producer', N'rowq_consumer', N'rowq_admin', N'rowq_monitor')
      and (u.type <> 'R' or u.owning_principal_id <> user_id(N'dbo'))
    union all
    select 4, N'rowq_owner is not a user without login'
    from sys.database_principals u
    where u.name = N'rowq_owner'
      and (u.type <> 'S' or u.authentication_type <> 0)
    union all
    select 5, concat(
        user_name(p.grantee_principal_id), N' has ',
        p.permission_name collate database_default, N' on ', u.name
    )
    from sys.database_permissions p
    join sys.database_principals u on u.principal_id = p.major_id
    where p.class_desc = N'DATABASE_PRINCIPAL'
      and p.state <> 'D'
      and p.permission_name <> N'VIEW DEFINITION'
      and u.name in (
          N'rowq_owner', N'rowq_producer', N'rowq_consumer', N'rowq_admin', N'rowq_monitor'
      )
    union all
    select 6, concat(N'rowq.', o.name, N' is not a table')
    from sys.objects o
    where o.schema_id = schema_id(N'rowq')
      and o.type <> 'U'
      and o.name in (
          N'archived', N'blocked', N'claim', N'dead', N'dedup', N'delayed', N'expiry', N'finished',
          N'limit_lock', N'group_waiting', N'history', N'lane', N'leased', N'message',
          N'group_slot', N'meta', N'migration', N'migration_log', N'queue_lock', N'queue',
          N'ready', N'deferred',
          N'result', N'schedule', N'started', N'successor', N'time_zone', N'topic_binding',
          N'worker'
      )
    union all
    select 7, concat(
        N'rowq.', object_name(g.parent_id), N' has trigger ', g.name,
        N', which must be disabled for the migration'
    )
    from sys.triggers g
    join sys.tables t on t.object_id = g.parent_id
    where t.schema_id = schema_id(N'rowq')
      and g.is_disabled = 0
    union all
    select 8, concat(N'rowq.', t.name, N' has computed column ', c.name)
    from sys.computed_columns c
    join sys.tables t on t.object_id = c.object_id
    where t.schema_id = schema_id(N'rowq')
    union all
    select 9, concat(
        object_schema_name(k.parent_object_id), N'.', object_name(k.parent_object_id),
        N' references rowq.', t.name, N' by foreign key ', k.name
    )
    from sys.foreign_keys k
    join sys.tables t on t.object_id = k.referenced_object_id
    where t.schema_id = schema_id(N'rowq')
      and (k.delete_referential_action > 0 or k.update_referential_action > 0)
    union all
    select 10, concat(N'rowq.', t.name, N' has a function in constraint ', k.name)
    from sys.tables t
    join sys.objects k on k.parent_object_id = t.object_id
    join sys.sql_expression_dependencies d on d.referencing_id = k.object_id
    left join sys.objects r on r.object_id = d.referenced_id
    where t.schema_id = schema_id(N'rowq')
      and k.type in ('C', 'D')
      and (r.type in ('FN', 'FS') or d.referenced_database_name is not null)
    union all
    select 11, concat(N'rowq.', t.name, N' has a security policy')
    from sys.security_predicates p
    join sys.tables t on t.object_id = p.target_object_id
    where t.schema_id = schema_id(N'rowq')
) f
order by f.place;

-- Refuse a schema with foreign tables too. An empty one, or one with only the migration record, is
-- an unfinished installation.
if @why is null
    and exists (select 1 from sys.objects o where o.schema_id = schema_id(N'rowq'))
    and (
        select count(*)
        from sys.tables t
        where t.schema_id = schema_id(N'rowq')
          and t.name in (N'meta', N'queue', N'queue_lock')
    ) < 3
    and (
        select count(*)
        from sys.tables t
        join sys.columns c on c.object_id = t.object_id
        where t.schema_id = schema_id(N'rowq')
          and t.name in (N'migration', N'migration_log')
          and c.name = N'migration_hash'
    ) < 2
    set @why = N'its tables are foreign';

if @why is not null
begin
    exec sys.sp_releaseapplock
        @Resource = N'rowq.migrate', @LockOwner = N'Session', @DbPrincipal = N'dbo';
    revert;
    set @message = concat(
        N'RQ802 foreign_schema: schema rowq in database ', db_name(), N' was not created by rowq',
        N', or not entirely: ', @why, nchar(10),
        N'Nothing was changed. Find out who created it, or use another database.'
    );
    set @message = replace(@message, N'%', N'%%');
    throw 52802, @message, 1;
end;
