:on error exit
:setvar rowq_runs_in sqlcmd
go
-- rowq 0.1.0: install 1.
-- Run it with: sqlcmd -S server -d database -b -i script.sql, or in an editor's SQLCMD mode. It is
-- one transaction: all of it or nothing. QUOTED_IDENTIFIER and ANSI_NULLS, which procedures keep
-- from the session that makes them, are set in here; sqlcmd needs no -I.
if N'$(rowq_runs_in)' <> N'sqlcmd'
begin
    print N'Nothing was done: run this with sqlcmd, or turn on SQLCMD mode.';
    set noexec on;
end;
go
set implicit_transactions off;
go

-- [before preflight.sql]
-- This runs first in every install, upgrade and rollback. It lets one session in at a time, for as
-- long as that session lasts. It refuses what would go wrong later, before anything is changed and
-- before anything that others have put into the database can run.
-- The isolation level is read committed, because a session that has waited for the lock must see
-- what the one before it has installed.
set ansi_nulls, ansi_padding, ansi_warnings, arithabort, concat_null_yields_null,
    nocount, quoted_identifier, xact_abort on;
set numeric_roundabort off;
set transaction isolation level read committed;
-- What follows waits for tables in use, and while it waits everybody else waits behind it. So it
-- gives up after ten seconds.
set lock_timeout 10000;
go
-- throw reads %% as %, so each % of the text is doubled.
declare @message nvarchar(2000), @result int, @why nvarchar(600);

-- RQ801: string_agg and trim need SQL Server 2017, that is compatibility level 140. Azure calls
-- itself version 12 for ever, so its version is not checked.
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

-- RQ803: CONTROL of the whole database is needed to make a schema, tables, procedures, partitions,
-- roles and their rights.
if has_perms_by_name(quotename(db_name()), N'DATABASE', N'CONTROL') = 0
begin
    set @message = concat(
        N'RQ803 missing_privilege: ', user_name(), N' is no owner of database ', db_name(),
        nchar(10), N'A DBA must run: alter role db_owner add member ', quotename(user_name()), N';'
    );
    set @message = replace(@message, N'%', N'%%');
    throw 52803, @message, 1;
end;

-- From here on this acts as dbo, who has no right on the server: what the database's owner has put
-- into it, such as a trigger on DDL, must not run with the rights of a DBA who migrates. Code that
-- runs in between cannot take this back, because a "revert" in a module ends only what began there.
begin try
    execute as user = N'dbo';
end try
begin catch
    -- After a restore, dbo may be a login that this server does not know (15517), or a Windows
    -- login out of reach (15404). Do not go on as the caller, who may have rights elsewhere.
    set @message = concat(
        N'RQ803 missing_privilege: nobody can act as dbo of database ', db_name(), N': ',
        left(error_message(), 600), nchar(10),
        N'A DBA must run: alter authorization on database::', quotename(db_name()),
        N' to a login of this server;'
    );
    set @message = replace(@message, N'%', N'%%');
    throw 52803, @message, 1;
end catch;

-- RQ802: in a trustworthy database that a member of sysadmin owns, dbo has all rights on the server
-- after all. Then no code of the database may run, and here is the only place to look for what runs
-- on DDL.
select top (1) @message = concat(
    N'RQ802 foreign_schema: trigger ', g.name, N' would run with all rights on the server, as',
    N' database ', db_name(), N' is trustworthy', nchar(10),
    N'Disable the trigger meanwhile, or run: alter database ', quotename(db_name()),
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

-- The lock is for dbo only: every user could hold a lock of public, which is the default.
exec @result = sys.sp_getapplock
    @Resource = N'rowq.migrate', @LockMode = N'Exclusive', @LockOwner = N'Session',
    @LockTimeout = 60000, @DbPrincipal = N'dbo';
if @result < -1
begin
    revert;
    set @message = concat(N'sp_getapplock has returned ', @result, N' for rowq.migrate');
    throw 50000, @message, 1;
end;
if @result < 0
begin
    revert;
    set @message = concat(
        N'RQ806 migration_busy: another migration has not ended for 60 seconds', nchar(10),
        N'Try again.'
    );
    throw 52806, @message, 1;
end;

-- RQ802: look for a schema, an object in it, a role or a user of rowq's names that somebody else
-- owns, can act as or change; for code of others that would run; and for what stands in the place
-- of a table.
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
    select 3, concat(u.name, N' is no role of dbo''s')
    from sys.database_principals u
    where u.name in (N'rowq_producer', N'rowq_consumer', N'rowq_admin', N'rowq_monitor')
      and (u.type <> 'R' or u.owning_principal_id <> user_id(N'dbo'))
    union all
    select 4, N'rowq_owner is no user without a login'
    from sys.database_principals u
    where u.name = N'rowq_owner'
      and (u.type <> 'S' or u.authentication_type <> 0)
    union all
    select 5, concat(
        user_name(p.grantee_principal_id), N' has ', p.permission_name, N' on ', u.name
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
    select 6, concat(N'rowq.', o.name, N' is no table')
    from sys.objects o
    where o.schema_id = schema_id(N'rowq')
      and o.type <> 'U'
      and o.name in (
          N'archived', N'blocked', N'claim', N'dead', N'dedup', N'delayed', N'expiry', N'finished',
          N'gate', N'grouped', N'history', N'lane', N'leased', N'message', N'message_group',
          N'meta', N'migration', N'migration_log', N'part', N'queue', N'ready', N'recheck',
          N'result', N'schedule', N'started', N'successor', N'time_zone', N'topic_binding'
      )
    union all
    select 7, concat(
        N'rowq.', object_name(g.parent_id), N' has trigger ', g.name,
        N', which must be disabled meanwhile'
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
        N' follows rowq.', t.name, N' by foreign key ', k.name
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

-- A schema with tables of others is refused too. An empty one, or one with nothing but bookkeeping,
-- is an installation of ours that was not finished.
if @why is null
    and exists (select 1 from sys.objects o where o.schema_id = schema_id(N'rowq'))
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
    set @why = N'its tables are not rowq''s';

if @why is not null
begin
    exec sys.sp_releaseapplock
        @Resource = N'rowq.migrate', @LockOwner = N'Session', @DbPrincipal = N'dbo';
    revert;
    set @message = concat(
        N'RQ802 foreign_schema: database ', db_name(), N' has a schema rowq that rowq did not make',
        N', or not alone: ', @why, nchar(10),
        N'It was left alone. Look who made it, or use another database.'
    );
    set @message = replace(@message, N'%', N'%%');
    throw 52802, @message, 1;
end;
go

-- [before begin]
begin transaction;
go

-- [before bookkeeping.sql]
-- These tables say which migrations are installed, in the columns that yoyo knows. Times are UTC.
-- The schema has an owner of its own, and nobody can log in as that owner: see tables/schema.sql.
if user_id(N'rowq_owner') is null
    create user rowq_owner without login;
go
if schema_id(N'rowq') is null
begin
    exec (N'create schema rowq authorization rowq_owner;');
end;
go
if object_id(N'rowq.migration') is null
begin
    create table rowq.migration (
        migration_hash nvarchar(64) collate Latin1_General_100_BIN2 not null,
        migration_id   nvarchar(255) collate Latin1_General_100_BIN2 not null,
        applied_at_utc datetime2(6) not null,
        constraint migration_pk primary key clustered (migration_hash)
    );
end;
go
if object_id(N'rowq.migration_log') is null
begin
    create table rowq.migration_log (
        id             nvarchar(36) collate Latin1_General_100_BIN2 not null,
        migration_hash nvarchar(64) collate Latin1_General_100_BIN2 not null,
        migration_id   nvarchar(255) collate Latin1_General_100_BIN2 not null,
        operation      nvarchar(10) collate Latin1_General_100_BIN2 not null,
        username       nvarchar(255) collate Latin1_General_100_BIN2 not null,
        hostname       nvarchar(255) collate Latin1_General_100_BIN2 not null,
        created_at_utc datetime2(6) not null,
        constraint migration_log_pk primary key clustered (id)
    );
end;
go

-- [before installed]
if exists (
    select 1
    from rowq.migration m
    where m.migration_id not in (N'ms-0001-first-release')
)
begin
    throw 52804, N'RQ804 schema_newer: this database was upgraded by a newer rowq', 1;
end;
go

-- [file tables/schema.sql]
-- These are the schema and its two sequences. Everything has one owner: the routines reach the
-- tables by ownership chaining, and nobody else has a right on them. The owner is not dbo, because
-- many users may write procedures of dbo's, and SQL Server does not ask the caller of a procedure
-- for rights on tables of the procedure's owner. What runs as rowq_owner has no right outside of
-- rowq but the one for partitions (grants.sql). The numbers are unique but never the order of
-- messages; of two notes about one message the later one has the higher number. A dequeue without a
-- message uses one up, and a crash loses as many as the cache holds.
set quoted_identifier on;
set ansi_nulls on;
go
if (select d.compatibility_level from sys.databases d where d.name = db_name()) < 140
    throw 50000, N'rowq needs SQL Server 2017 and a compatibility level of 140 or more', 1;
go
if user_id(N'rowq_owner') is null
    create user rowq_owner without login;
go
if schema_id(N'rowq') is null
    exec (N'create schema rowq authorization rowq_owner');
go
if object_id(N'rowq.message_seq') is null
create sequence rowq.message_seq as bigint start with 1 increment by 1 no cycle cache 1000;
go
if object_id(N'rowq.claim_seq') is null
create sequence rowq.claim_seq as bigint start with 1 increment by 1 no cycle cache 1000;
go

-- [file tables/types.sql]
-- Internal procedures hand these lists to each other: no table stores them, and callers never see
-- them. In message_list, place is the order of delivery; group_key, the bytes of the key and a dot,
-- is of a message that joins a group or leaves it; is_tokenless is 1 for one that has no token of
-- its group, and is_cancelled for one of a claim that was cancelled there. A row of tie_list is
-- what the end of a message has to free: its dedup key, its token of a group, and what waits for it
-- (is_awaited is 1, or null). new_list has the messages of a batch, also those that are not added:
-- holder is the unfinished message that has the dedup key, this one or one with the same key;
-- key_bytes and group_key are bytes and a dot. given_list has a row for each key of each message of
-- a batch: value is cut to 402 UTF-16 units, and size counts characters, or bytes of a binary body.
-- parsed_list has the messages of a batch with what is short of them; key_place counts those with
-- the same dedup key.
set quoted_identifier on;
set ansi_nulls on;
go
if type_id(N'rowq.message_list') is null
create type rowq.message_list as table (
    message_id   bigint not null primary key clustered,
    lane         smallint not null,
    place        bigint not null,
    attempt      smallint not null,
    due_at       datetime2(6) null,
    group_key    varbinary(802) null,
    is_tokenless bit null,
    is_cancelled bit null
);
go
if type_id(N'rowq.tie_list') is null
create type rowq.tie_list as table (
    message_id bigint not null primary key clustered,
    dedup_key  nvarchar(400) collate Latin1_General_100_BIN2 null,
    group_key  nvarchar(400) collate Latin1_General_100_BIN2 null,
    is_awaited bit null
);
go
if type_id(N'rowq.new_list') is null
create type rowq.new_list as table (
    position   int not null primary key clustered,
    message_id bigint not null,
    key_bytes  varbinary(802) null,
    key_place  int not null,
    lane       smallint not null,
    due_at     datetime2(6) null,
    holder     bigint null,
    group_key  varbinary(802) null,
    on_dead    nvarchar(20) collate Latin1_General_100_BIN2 null
);
go
if type_id(N'rowq.given_list') is null
create type rowq.given_list as table (
    position  int not null,
    name      nvarchar(60) collate Latin1_General_100_BIN2 null,
    kind      tinyint not null,
    value     nvarchar(402) collate Latin1_General_100_BIN2 null,
    size      bigint null,
    is_base64 bit not null,
    moment    datetime2(6) null
);
go
if type_id(N'rowq.parsed_list') is null
create type rowq.parsed_list as table (
    position       int not null primary key clustered,
    lane           smallint not null,
    delay_seconds  float null,
    run_at         datetime2(6) null,
    message_type   nvarchar(400) collate Latin1_General_100_BIN2 null,
    dedup_key      nvarchar(400) collate Latin1_General_100_BIN2 null,
    key_place      int not null,
    max_attempts   smallint null,
    group_key      nvarchar(400) collate Latin1_General_100_BIN2 null,
    on_dead        nvarchar(20) collate Latin1_General_100_BIN2 null,
    expire_seconds float null
);
go

-- [file tables/meta.sql]
-- The rows say what is installed: schema_version and rowq_version. Each migration writes them.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.meta') is null
create table rowq.meta (
    name       nvarchar(100) collate Latin1_General_100_BIN2 not null,
    value      nvarchar(100) collate Latin1_General_100_BIN2 not null,
    changed_at datetime2(6) not null constraint meta_changed_at_df default sysutcdatetime(),
    constraint meta_pk primary key clustered (name)
);
go

-- [file tables/queue.sql]
-- A row holds the settings of a queue. part_id stands for the queue in the tables below and is
-- never reused. queue_key is what is compared: the bytes of the name and a dot, because SQL Server
-- ignores trailing blanks when it compares texts, and trailing zeros when it compares bytes. All
-- times are UTC.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.queue') is null
create table rowq.queue (
    part_id              int identity (1, 1) not null,
    queue_key            varbinary(402) not null,
    queue_name           nvarchar(200) collate Latin1_General_100_BIN2 not null,
    lease_seconds        int not null constraint queue_lease_seconds_df default 30,
    max_attempts         smallint not null constraint queue_max_attempts_df default 10,
    backoff_base_seconds float not null constraint queue_backoff_base_seconds_df default 5,
    backoff_factor       float not null constraint queue_backoff_factor_df default 2,
    backoff_cap_seconds  float not null constraint queue_backoff_cap_seconds_df default 3600,
    backoff_jitter       float not null constraint queue_backoff_jitter_df default 0.2,
    archive_days         int not null constraint queue_archive_days_df default 0,
    max_body_length      int not null constraint queue_max_body_length_df default 1048576,
    group_limit          smallint not null constraint queue_group_limit_df default 1,
    group_after_dead     nvarchar(20) collate Latin1_General_100_BIN2 not null
        constraint queue_group_after_dead_df default N'continue',
    group_pause_seconds  float not null constraint queue_group_pause_seconds_df default 0,
    has_recheck          bit not null constraint queue_has_recheck_df default 0,
    max_leased           int not null constraint queue_max_leased_df default 0,
    rate_limit           int not null constraint queue_rate_limit_df default 0,
    rate_seconds         float not null constraint queue_rate_seconds_df default 1,
    result_seconds       float not null constraint queue_result_seconds_df default 0,
    history_days         int not null constraint queue_history_days_df default 0,
    paused_at            datetime2(6) null,
    created_at           datetime2(6) not null,
    constraint queue_pk primary key nonclustered (part_id),
    constraint queue_queue_key_uq unique clustered (queue_key),
    constraint queue_lease_seconds_ck check (lease_seconds between 1 and 86400),
    constraint queue_max_attempts_ck check (max_attempts between 1 and 10000),
    constraint queue_backoff_base_seconds_ck check (backoff_base_seconds between 0 and 86400),
    constraint queue_backoff_factor_ck check (backoff_factor between 1 and 10),
    constraint queue_backoff_cap_seconds_ck check (backoff_cap_seconds between 0 and 31536000),
    constraint queue_backoff_jitter_ck check (backoff_jitter between 0 and 1),
    constraint queue_archive_days_ck check (archive_days between 0 and 36500),
    constraint queue_max_body_length_ck check (max_body_length between 1 and 33554432),
    constraint queue_group_limit_ck check (group_limit between 1 and 100),
    constraint queue_group_after_dead_ck check (group_after_dead in (N'continue', N'hold')),
    constraint queue_group_pause_seconds_ck check (group_pause_seconds between 0 and 86400),
    constraint queue_max_leased_ck check (max_leased between 0 and 100000),
    constraint queue_rate_limit_ck check (rate_limit between 0 and 100000),
    constraint queue_rate_seconds_ck check (rate_seconds between 0.1e0 and 86400),
    constraint queue_result_seconds_ck check (result_seconds between 0 and 31536000),
    constraint queue_history_days_ck check (history_days between 0 and 36500)
);
go

-- [file tables/part.sql]
-- A row stands for one queue and never changes. A call that adds or moves messages holds a shared
-- lock on it to the end of its transaction, and drop_queue locks it exclusively. The row of table
-- queue is not used for this, so that pausing and altering a queue never wait for a producer. Row 0
-- stands for no queue: a call in the caller's transaction reads it first, and the lock that this
-- may leave (under REPEATABLE READ or SERIALIZABLE) is in nobody's way.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.part') is null
create table rowq.part (
    part_id int not null,
    constraint part_pk primary key clustered (part_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.part set (lock_escalation = disable);
go
insert into rowq.part (part_id)
select 0
where not exists (select 1 from rowq.part p where p.part_id = 0);
go

-- [file tables/lane.sql]
-- A row is a lane of a part. create_queue makes twenty for messages (priority * 2, plus 1 for the
-- tail). floor is where the live rows of the lane begin: a hint that spares readers the ghosts
-- below it. A ghost is a deleted row that the engine keeps as long as a row version may be wanted
-- (by a snapshot, a readable secondary or accelerated recovery). dequeue moves the floor up to what
-- it took, but never nearer than half a second to now. maintain looks from 0 and corrects the
-- floor, so a wrong one delays a message and never loses one. Lanes below 0 stand for the other
-- tables that are read from their low end: -1 claim (claim_id), -2 delayed (due_at) and -3 finished
-- (finished_at), the last two in microseconds since 1970. A lane that was never used is closed, and
-- dequeue does not look into it; lane -3 is closed while the part has nothing in the archive.
-- Everything here is a hint, so it is read with "readuncommitted", which waits for nobody, and
-- changed with "xlock, readpast", which leaves a row alone that another session is changing. Lane
-- -4 is for guests, that is for calls in the caller's transaction: a guest that takes messages
-- holds this row shared to the end of the transaction, and a floor moves up only while nobody holds
-- it, so that it never passes rows that a rollback would put back. The session that locks lane -5
-- is the one that is elected to run maintain for the part. Lane -6 is for recheck (due_at): it is
-- closed, and its floor is not looked for, until maintain has seen a row there. So are lane -7, for
-- started (started_at), lane -9, for result (finished_at), lane -10, for history (ended_at), which
-- is closed until the first purge, and lane -8, for expiry (expires_at): maintain opens that one
-- before it forgets the first row, so a part with neither has no message that expires.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.lane') is null
create table rowq.lane (
    part_id     int not null,
    lane        smallint not null,
    is_open     bit not null constraint lane_is_open_df default 0,
    floor       bigint not null constraint lane_floor_df default 0,
    check_after datetime2(6) not null constraint lane_check_after_df default '19700101',
    constraint lane_pk primary key clustered (part_id, lane)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.lane set (lock_escalation = disable);
go

-- [file tables/message.sql]
-- A row is what the producer handed over. It is written once and deleted once; only a failure
-- updates last_error and due_at. enqueued_at finds a message that was never given back, because its
-- seq in ready is the same moment in microseconds. due_at is the last place that the message had in
-- delayed. A small body stays in the row; a longer one is a LOB that only the join after a dequeue
-- reads. The lengths here count UTF-16 units: they are twice the characters that are allowed, so
-- that characters outside the basic plane fit, which take two units.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.message') is null
create table rowq.message (
    part_id      int not null,
    message_id   bigint not null,
    max_attempts smallint null,
    enqueued_at  datetime2(6) not null,
    due_at       datetime2(6) null,
    expires_at   datetime2(6) null,
    message_type nvarchar(400) collate Latin1_General_100_BIN2 null,
    dedup_key    nvarchar(400) collate Latin1_General_100_BIN2 null,
    headers      nvarchar(max) collate Latin1_General_100_BIN2 null,
    body         nvarchar(max) collate Latin1_General_100_BIN2 null,
    body_binary  varbinary(max) null,
    last_error   nvarchar(4000) collate Latin1_General_100_BIN2 null,
    group_key    nvarchar(400) collate Latin1_General_100_BIN2 null,
    constraint message_pk primary key clustered (part_id, message_id)
        with (statistics_norecompute = on)
);
go
alter table rowq.message set (lock_escalation = disable);
go

-- [file tables/ready.sql]
-- A row is a message that waits for a worker. The clustered key is the dequeue order. There is no
-- second index, so no reader can meet a consumer that locks in the opposite order. lane is priority
-- * 2, plus 1 for the tail: a message that is released or reaped goes to the front lane. seq is the
-- moment of entry, in microseconds since 1970 UTC, plus the place in its batch: no sequence orders
-- the producers, and a row that is committed late is at most as old as its transaction. message_id
-- decides between equal ones. Rows are locked one by one, because a reader would wait for a page
-- lock or an escalated one instead of passing over it.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.ready') is null
create table rowq.ready (
    part_id    int not null,
    lane       smallint not null,
    seq        bigint not null,
    message_id bigint not null,
    attempt    smallint not null constraint ready_attempt_df default 0,
    constraint ready_pk primary key clustered (part_id, lane, seq, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.ready set (lock_escalation = disable);
go

-- [file tables/delayed.sql]
-- A row is a message that waits for its time, kept apart so that dequeue does not read it. The
-- clustered key is the order in which messages become due. message.due_at finds a message here, so
-- there is no second index. group_key, the bytes of the key and a dot (see queue.sql), is of one
-- that joins its group when it is due; one that is retried has its token, and none here.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.delayed') is null
create table rowq.delayed (
    part_id    int not null,
    due_at     datetime2(6) not null,
    message_id bigint not null,
    lane       smallint not null,
    attempt    smallint not null constraint delayed_attempt_df default 0,
    group_key  varbinary(802) null,
    constraint delayed_pk primary key clustered (part_id, due_at, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.delayed set (lock_escalation = disable);
go

-- [file tables/claim.sql]
-- A row is one successful dequeue: the lease of a whole batch, whose messages are in leased. A
-- heartbeat changes only lease_until and progress, which are in no index. progress is null until a
-- heartbeat says it. has_cancels is 1 once messages of the batch were cancelled while the worker
-- had them, and null before. Whoever changes the batch, or what leased says of it, has this row
-- locked.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.claim') is null
create table rowq.claim (
    part_id     int not null,
    claim_id    bigint not null,
    leased_at   datetime2(6) not null,
    lease_until datetime2(6) not null,
    worker_name nvarchar(400) collate Latin1_General_100_BIN2 null,
    has_cancels bit null,
    progress    nvarchar(4000) collate Latin1_General_100_BIN2 null,
    constraint claim_pk primary key clustered (part_id, claim_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.claim set (lock_escalation = disable);
go

-- [file tables/leased.sql]
-- A row is a message of a claim, and the clustered key is the order of delivery. dequeue fills the
-- table with "output into" from the rows that it deletes in ready, which come in this very order,
-- and reads it without a sort. "output into" requires that the table has no trigger, foreign key or
-- check. is_cancelled is 1 for a message that was cancelled while the worker had it, else null.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.leased') is null
create table rowq.leased (
    part_id      int not null,
    claim_id     bigint not null,
    lane         smallint not null,
    seq          bigint not null,
    message_id   bigint not null,
    attempt      smallint not null,
    is_cancelled bit null,
    constraint leased_pk primary key clustered (part_id, claim_id, lane, seq, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.leased set (lock_escalation = disable);
go

-- [file tables/dead.sql]
-- A row is a message that failed for good. It stays until it is reset, cancelled or purged. The
-- reason is in message.last_error. holds_group is 1 where it has kept the token of its group, and
-- else null.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.dead') is null
create table rowq.dead (
    part_id     int not null,
    message_id  bigint not null,
    lane        smallint not null,
    attempt     smallint not null,
    died_at     datetime2(6) not null,
    holds_group bit null,
    constraint dead_pk primary key clustered (part_id, message_id)
        with (statistics_norecompute = on)
);
go
alter table rowq.dead set (lock_escalation = disable);
go

-- [file tables/dedup.sql]
-- A row is the dedup key of an unfinished message, kept as its bytes and a dot (see queue.sql).
-- With ignore_dup_key, an insert of a key that exists inserts no row and raises no error that would
-- doom a transaction; where the other insert is not committed, this one waits for it first. The
-- option stands on the clustered key only: for a second index the engine would lock ranges of keys.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.dedup') is null
create table rowq.dedup (
    part_id    int not null,
    dedup_key  varbinary(802) not null,
    message_id bigint not null,
    constraint dedup_pk primary key clustered (part_id, dedup_key)
        with (ignore_dup_key = on, allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.dedup set (lock_escalation = disable);
go

-- [file tables/message_group.sql]
-- A row is a token: the right of one message of a group to be ready, leased or delayed for a retry.
-- It does not say whose it is: whoever finishes a message of the group passes one on or gives it
-- back, in the transaction that ends the message. Rows are inserted, locked and deleted, never
-- updated. group_key is the bytes of the key and a dot (see queue.sql).
-- A producer whose message is to wait in the group holds all tokens shared (S) to the end of its
-- transaction. Whoever takes a message out of the table grouped, to make it ready or to withdraw
-- it, holds one token by an update lock (U), which goes together with S and not with another U.
-- Whoever gives a token back holds all of them exclusively (X), so that nobody is coming and nobody
-- has taken a message out that a rollback would put back. U and X are only tried (readpast). A call
-- in the caller's transaction never takes X, so that a producer never waits for such a transaction,
-- unless it has opened the group.
-- With ignore_dup_key, an insert of a number that exists inserts no row and raises no error that
-- would doom a transaction; where the other insert is not committed, this one waits for it first.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.message_group') is null
create table rowq.message_group (
    part_id   int not null,
    group_key varbinary(802) not null,
    token_no  smallint not null,
    constraint message_group_pk primary key clustered (part_id, group_key, token_no)
        with (ignore_dup_key = on, allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.message_group set (lock_escalation = disable);
go

-- [file tables/grouped.sql]
-- A row is a message that waits behind others of its group, kept apart so that dequeue does not
-- read it. The clustered key is the order in which a group goes on. group_key is the bytes of the
-- key and a dot (see queue.sql). message_group.sql says which lock goes before a change here.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.grouped') is null
create table rowq.grouped (
    part_id    int not null,
    group_key  varbinary(802) not null,
    message_id bigint not null,
    lane       smallint not null,
    constraint grouped_pk primary key clustered (part_id, group_key, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.grouped set (lock_escalation = disable);
go

-- [file tables/recheck.sql]
-- A row is something that has to be looked at again, because another transaction held what was
-- looked at, because its own was the caller's, or because there was too much of it. With a
-- group_key it is a token that its last owner could not pass on or give back, or whose group rests;
-- is_hint says that there is no token yet: the group's limit was raised, and there may be one to
-- take. With a message_id it is a blocked message that waits for nothing any more, perhaps. With a
-- predecessor_id it is a message that has ended, of which not all successors were freed; is_hint
-- says that it is dead. maintain looks at what is due, and so does a dequeue that finds nothing, in
-- a transaction of its own, once maintain has seen such a row (queue.has_recheck). recheck_id is of
-- the sequence of messages, because an identity would change @@identity for a caller who has just
-- inserted something.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.recheck') is null
create table rowq.recheck (
    part_id        int not null,
    due_at         datetime2(6) not null,
    recheck_id     bigint not null,
    message_id     bigint null,
    predecessor_id bigint null,
    group_key      varbinary(802) null,
    is_hint        bit not null constraint recheck_is_hint_df default 0,
    constraint recheck_pk primary key clustered (part_id, due_at, recheck_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.recheck set (lock_escalation = disable);
go

-- [file tables/blocked.sql]
-- A row is a message that waits for others to end, its predecessors, kept apart so that dequeue
-- does not read it. It waits for one of them at a time, the newest that has not ended
-- (predecessor_id, with a row in successor). rest_ids, a JSON array, are the others that it may
-- still have to wait for, newest first. group_key, the bytes of the key and a dot (see queue.sql),
-- is of a message that joins its group when it waits for none of them any more.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.blocked') is null
create table rowq.blocked (
    part_id        int not null,
    message_id     bigint not null,
    lane           smallint not null,
    predecessor_id bigint null,
    due_at         datetime2(6) null,
    on_dead        nvarchar(20) collate Latin1_General_100_BIN2 null,
    group_key      varbinary(802) null,
    rest_ids       nvarchar(max) collate Latin1_General_100_BIN2 null,
    constraint blocked_pk primary key clustered (part_id, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.blocked set (lock_escalation = disable);
go

-- [file tables/successor.sql]
-- A row says which message waits for which other one; on_dead is that of blocked. The one that ends
-- a message deletes its rows, in the same transaction. Who names a message as a predecessor holds
-- its row of message shared (S) to the end of the transaction, and only then adds a row here. Who
-- ends that message, or makes it dead, locks its row exclusively (X) before it looks here. So it
-- sees every row of producers that came before it, and those that come after it see its end. The
-- row of message itself is not changed for this: without row versions its readers, every dequeue
-- among them, would wait for the producer.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.successor') is null
create table rowq.successor (
    part_id        int not null,
    predecessor_id bigint not null,
    message_id     bigint not null,
    on_dead        nvarchar(20) collate Latin1_General_100_BIN2 null,
    constraint successor_pk primary key clustered (part_id, predecessor_id, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.successor set (lock_escalation = disable);
go

-- [file tables/gate.sql]
-- A row is the right to take messages of a queue that has limits: a dequeue locks it before it
-- counts what is leased, and until its transaction ends. It never changes.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.gate') is null
create table rowq.gate (
    part_id int not null,
    constraint gate_pk primary key clustered (part_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.gate set (lock_escalation = disable);
go

-- [file tables/started.sql]
-- A row says when a dequeue of a queue with a rate_limit has begun deliveries, and how many. It
-- stays until maintain finds it older than rate_seconds.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.started') is null
create table rowq.started (
    part_id    int not null,
    started_at datetime2(6) not null,
    claim_id   bigint not null,
    messages   int not null,
    constraint started_pk primary key clustered (part_id, started_at, claim_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.started set (lock_escalation = disable);
go

-- [file tables/expiry.sql]
-- A row says when a message expires, and where it is if it is ready then. Who adds a message adds
-- one, and so does who makes it ready at a new place or delays it anew: maintain can forget a row
-- whose message it does not find. Of two rows of a message the newer one counts: expiry_id is of
-- the sequence of messages, and of who adds a message it is the message's own. An identity would
-- change @@identity for a caller who has just inserted something. A row stays until its moment,
-- also where the message has ended before.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.expiry') is null
create table rowq.expiry (
    part_id    int not null,
    expires_at datetime2(6) not null,
    expiry_id  bigint not null,
    message_id bigint not null,
    lane       smallint null,
    seq        bigint null,
    constraint expiry_pk primary key clustered (part_id, expires_at, expiry_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.expiry set (lock_escalation = disable);
go

-- [file tables/result.sql]
-- A row says how a message has ended, in a queue with result_seconds. It stays until maintain finds
-- it older than these, or the message, which is dead, is reset. Whoever writes locks the row by the
-- clustered key first; the other index is for maintain and health, which read it alone and without
-- locks that last, so nobody locks the two in the opposite order. result is JSON of any kind.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.result') is null
create table rowq.result (
    part_id     int not null,
    message_id  bigint not null,
    finished_at datetime2(6) not null,
    state       nvarchar(20) collate Latin1_General_100_BIN2 not null,
    result      nvarchar(max) collate Latin1_General_100_BIN2 null,
    last_error  nvarchar(4000) collate Latin1_General_100_BIN2 null,
    constraint result_pk primary key clustered (part_id, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
if not exists (
    select 1
    from sys.indexes i
    where i.object_id = object_id(N'rowq.result')
      and i.name = N'result_finished_ix'
)
create nonclustered index result_finished_ix on rowq.result (part_id, finished_at)
    with (allow_page_locks = off, statistics_norecompute = on);
go
alter table rowq.result set (lock_escalation = disable);
go

-- [file tables/history.sql]
-- A row is an attempt that has ended, in a queue with history_days. It stays until maintain finds
-- it older than these. There is no partition a day as in the archive, because a partition is added
-- or dropped under a lock on the whole table, for which every call that ends messages would wait.
-- Rows are only added and deleted, both by the clustered key; the other index is for get_history,
-- which passes over locked rows, so nobody waits for one who locks the two in the opposite order.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.history') is null
create table rowq.history (
    part_id     int not null,
    ended_at    datetime2(6) not null,
    message_id  bigint not null,
    claim_id    bigint not null,
    attempt     smallint not null,
    leased_at   datetime2(6) not null,
    outcome     nvarchar(20) collate Latin1_General_100_BIN2 not null,
    worker_name nvarchar(400) collate Latin1_General_100_BIN2 null,
    error       nvarchar(4000) collate Latin1_General_100_BIN2 null,
    constraint history_pk primary key clustered (part_id, ended_at, message_id, claim_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
if not exists (
    select 1
    from sys.indexes i
    where i.object_id = object_id(N'rowq.history')
      and i.name = N'history_message_ix'
)
create nonclustered index history_message_ix on rowq.history (part_id, message_id)
    with (allow_page_locks = off, statistics_norecompute = on);
go
alter table rowq.history set (lock_escalation = disable);
go

-- [file tables/schedule.sql]
-- A row is a schedule: maintain adds its message to the queue in the transaction that moves
-- next_run_at on. next_run_at is null while it is paused, and after its last tick. schedule_key is
-- what is compared: the bytes of the name and a dot, as in table queue. A second session that
-- creates the same schedule waits for the first and then adds no row (ignore_dup_key): a look with
-- holdlock would lock the schedule beside it as well. There are no page locks, and locks do not
-- escalate, so that maintain passes over single rows. The lengths count UTF-16 units.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.schedule') is null
create table rowq.schedule (
    part_id          int not null,
    schedule_key     varbinary(402) not null,
    schedule_name    nvarchar(200) collate Latin1_General_100_BIN2 not null,
    cron             nvarchar(200) collate Latin1_General_100_BIN2 null,
    interval_seconds float null,
    time_zone        nvarchar(128) collate Latin1_General_100_BIN2 not null,
    missed           nvarchar(20) collate Latin1_General_100_BIN2 not null,
    overlap          bit not null,
    starts_at        datetime2(6) not null,
    ends_at          datetime2(6) null,
    message_type     nvarchar(400) collate Latin1_General_100_BIN2 null,
    headers          nvarchar(max) collate Latin1_General_100_BIN2 null,
    priority         smallint not null,
    group_key        nvarchar(400) collate Latin1_General_100_BIN2 null,
    max_attempts     smallint null,
    body             nvarchar(max) collate Latin1_General_100_BIN2 null,
    body_binary      varbinary(max) null,
    is_paused        bit not null constraint schedule_is_paused_df default 0,
    next_run_at      datetime2(6) null,
    last_run_at      datetime2(6) null,
    last_message_id  bigint null,
    last_error       nvarchar(4000) collate Latin1_General_100_BIN2 null,
    constraint schedule_pk primary key clustered (part_id, schedule_key)
        with (ignore_dup_key = on, allow_page_locks = off, statistics_norecompute = on),
    constraint schedule_cron_ck check (
        cron is null and interval_seconds is not null
        or cron is not null and interval_seconds is null
    ),
    constraint schedule_missed_ck check (missed in (N'skip', N'once', N'all'))
);
go
alter table rowq.schedule set (lock_escalation = disable);
go

-- [file tables/time_zone.sql]
-- A row says which time zone of Windows, as SQL Server names it, an IANA name such as Europe/Berlin
-- stands for. The pairs are those of windowsZones in the Unicode CLDR, and today's names of what is
-- there under an older one. A name that is no IANA name is not here: it goes to the server as it
-- is.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.time_zone') is null
create table rowq.time_zone (
    iana_name    nvarchar(128) collate Latin1_General_100_BIN2 not null,
    windows_name nvarchar(128) collate Latin1_General_100_BIN2 not null,
    constraint time_zone_pk primary key clustered (iana_name)
);
go
insert into rowq.time_zone (iana_name, windows_name)
select i.value, v.windows_name
from (
    values
        (N'AUS Central Standard Time', N'Australia/Darwin'),
        (N'AUS Eastern Standard Time', N'Australia/Sydney Australia/Melbourne Australia/Canberra'),
        (N'Afghanistan Standard Time', N'Asia/Kabul'),
        (N'Alaskan Standard Time', N'America/Anchorage America/Juneau America/Metlakatla'),
        (N'Alaskan Standard Time', N'America/Nome America/Sitka America/Yakutat US/Alaska'),
        (N'Aleutian Standard Time', N'America/Adak'),
        (N'Altai Standard Time', N'Asia/Barnaul'),
        (N'Arab Standard Time', N'Asia/Riyadh Asia/Aden Asia/Bahrain Asia/Kuwait Asia/Qatar'),
        (N'Arabian Standard Time', N'Etc/GMT-4 Asia/Dubai Asia/Muscat'),
        (N'Arabic Standard Time', N'Asia/Baghdad'),
        (N'Argentina Standard Time', N'America/Buenos_Aires America/Argentina/Buenos_Aires'),
        (N'Argentina Standard Time', N'America/Argentina/La_Rioja America/Argentina/Rio_Gallegos'),
        (N'Argentina Standard Time', N'America/Argentina/Salta America/Argentina/San_Juan'),
        (N'Argentina Standard Time', N'America/Argentina/San_Luis America/Argentina/Tucuman'),
        (N'Argentina Standard Time', N'America/Argentina/Ushuaia America/Argentina/Catamarca'),
        (N'Argentina Standard Time', N'America/Argentina/Cordoba America/Argentina/Jujuy'),
        (N'Argentina Standard Time', N'America/Argentina/Mendoza America/Catamarca'),
        (N'Argentina Standard Time', N'America/Cordoba America/Jujuy America/Mendoza'),
        (N'Astrakhan Standard Time', N'Europe/Astrakhan Europe/Ulyanovsk'),
        (N'Atlantic Standard Time', N'America/Halifax America/Glace_Bay America/Goose_Bay'),
        (N'Atlantic Standard Time', N'America/Moncton America/Thule Atlantic/Bermuda'),
        (N'Aus Central W. Standard Time', N'Australia/Eucla'),
        (N'Azerbaijan Standard Time', N'Asia/Baku'),
        (N'Azores Standard Time', N'Atlantic/Azores'),
        (N'Bahia Standard Time', N'America/Bahia'),
        (N'Bangladesh Standard Time', N'Asia/Dhaka Asia/Thimphu'),
        (N'Belarus Standard Time', N'Europe/Minsk'),
        (N'Bougainville Standard Time', N'Pacific/Bougainville'),
        (N'Canada Central Standard Time', N'America/Regina America/Swift_Current'),
        (N'Cape Verde Standard Time', N'Etc/GMT+1 Atlantic/Cape_Verde'),
        (N'Caucasus Standard Time', N'Asia/Yerevan'),
        (N'Cen. Australia Standard Time', N'Australia/Adelaide Australia/Broken_Hill'),
        (N'Central America Standard Time', N'Etc/GMT+6 America/Guatemala America/Belize'),
        (N'Central America Standard Time', N'America/Costa_Rica America/El_Salvador'),
        (N'Central America Standard Time', N'America/Managua America/Tegucigalpa'),
        (N'Central America Standard Time', N'Pacific/Galapagos'),
        (N'Central Asia Standard Time', N'Etc/GMT-6 Asia/Bishkek Asia/Urumqi Indian/Chagos'),
        (N'Central Brazilian Standard Time', N'America/Cuiaba America/Campo_Grande'),
        (N'Central Europe Standard Time', N'Europe/Budapest Europe/Prague Europe/Bratislava'),
        (N'Central Europe Standard Time', N'Europe/Ljubljana Europe/Belgrade Europe/Podgorica'),
        (N'Central Europe Standard Time', N'Europe/Tirane'),
        (N'Central European Standard Time', N'Europe/Warsaw Europe/Sarajevo Europe/Skopje'),
        (N'Central European Standard Time', N'Europe/Zagreb Poland'),
        (N'Central Pacific Standard Time', N'Etc/GMT-11 Pacific/Guadalcanal Pacific/Noumea'),
        (N'Central Pacific Standard Time', N'Pacific/Efate Pacific/Ponape Pacific/Pohnpei'),
        (N'Central Pacific Standard Time', N'Pacific/Kosrae'),
        (N'Central Standard Time', N'America/Chicago America/Winnipeg America/Rankin_Inlet'),
        (N'Central Standard Time', N'America/Resolute America/Matamoros America/Ojinaga'),
        (N'Central Standard Time', N'America/Menominee America/Indiana/Knox'),
        (N'Central Standard Time', N'America/Indiana/Tell_City America/North_Dakota/Beulah'),
        (N'Central Standard Time', N'America/North_Dakota/Center America/North_Dakota/New_Salem'),
        (N'Central Standard Time', N'US/Central'),
        (N'Central Standard Time (Mexico)', N'America/Mexico_City America/Merida'),
        (N'Central Standard Time (Mexico)', N'America/Monterrey America/Chihuahua'),
        (N'Central Standard Time (Mexico)', N'America/Bahia_Banderas'),
        (N'Chatham Islands Standard Time', N'Pacific/Chatham'),
        (N'China Standard Time', N'Asia/Shanghai Asia/Hong_Kong Asia/Macau Asia/Chongqing PRC'),
        (N'Cuba Standard Time', N'America/Havana'),
        (N'Dateline Standard Time', N'Etc/GMT+12'),
        (N'E. Africa Standard Time', N'Etc/GMT-3 Africa/Nairobi Africa/Addis_Ababa Africa/Asmera'),
        (N'E. Africa Standard Time', N'Africa/Asmara Africa/Dar_es_Salaam Africa/Djibouti'),
        (N'E. Africa Standard Time', N'Africa/Kampala Africa/Mogadishu Indian/Antananarivo'),
        (N'E. Africa Standard Time', N'Indian/Comoro Indian/Mayotte'),
        (N'E. Australia Standard Time', N'Australia/Brisbane Australia/Lindeman'),
        (N'E. Europe Standard Time', N'Europe/Chisinau'),
        (N'E. South America Standard Time', N'America/Sao_Paulo'),
        (N'Easter Island Standard Time', N'Pacific/Easter'),
        (N'Eastern Standard Time', N'America/New_York America/Toronto America/Detroit'),
        (N'Eastern Standard Time', N'America/Montreal America/Nassau America/Iqaluit'),
        (N'Eastern Standard Time', N'America/Kentucky/Louisville America/Kentucky/Monticello'),
        (N'Eastern Standard Time', N'America/Louisville America/Indiana/Petersburg'),
        (N'Eastern Standard Time', N'America/Indiana/Vincennes America/Indiana/Winamac US/Eastern'),
        (N'Eastern Standard Time (Mexico)', N'America/Cancun'),
        (N'Egypt Standard Time', N'Africa/Cairo'),
        (N'Ekaterinburg Standard Time', N'Asia/Yekaterinburg'),
        (N'FLE Standard Time', N'Europe/Kiev Europe/Kyiv Europe/Helsinki Europe/Riga Europe/Sofia'),
        (N'FLE Standard Time', N'Europe/Tallinn Europe/Vilnius Europe/Mariehamn Europe/Uzhgorod'),
        (N'FLE Standard Time', N'Europe/Zaporozhye'),
        (N'Fiji Standard Time', N'Pacific/Fiji'),
        (N'GMT Standard Time', N'Europe/London Europe/Dublin Europe/Lisbon Europe/Guernsey'),
        (N'GMT Standard Time', N'Europe/Isle_of_Man Europe/Jersey Europe/Belfast Atlantic/Canary'),
        (N'GMT Standard Time', N'Atlantic/Faeroe Atlantic/Faroe Atlantic/Madeira GB'),
        (N'GTB Standard Time', N'Europe/Bucharest Europe/Athens Asia/Nicosia Asia/Famagusta'),
        (N'GTB Standard Time', N'Europe/Nicosia'),
        (N'Georgian Standard Time', N'Asia/Tbilisi'),
        (N'Greenland Standard Time', N'America/Godthab America/Nuuk'),
        (N'Greenwich Standard Time', N'Atlantic/Reykjavik Africa/Abidjan Africa/Accra'),
        (N'Greenwich Standard Time', N'Africa/Bamako Africa/Banjul Africa/Bissau Africa/Conakry'),
        (N'Greenwich Standard Time', N'Africa/Dakar Africa/Freetown Africa/Lome Africa/Monrovia'),
        (N'Greenwich Standard Time', N'Africa/Nouakchott Africa/Ouagadougou America/Danmarkshavn'),
        (N'Greenwich Standard Time', N'Atlantic/St_Helena'),
        (N'Haiti Standard Time', N'America/Port-au-Prince'),
        (N'Hawaiian Standard Time', N'Etc/GMT+10 Pacific/Honolulu Pacific/Rarotonga'),
        (N'Hawaiian Standard Time', N'Pacific/Tahiti US/Hawaii'),
        (N'India Standard Time', N'Asia/Calcutta Asia/Kolkata'),
        (N'Iran Standard Time', N'Asia/Tehran'),
        (N'Israel Standard Time', N'Asia/Jerusalem Asia/Tel_Aviv Israel'),
        (N'Jordan Standard Time', N'Asia/Amman'),
        (N'Kaliningrad Standard Time', N'Europe/Kaliningrad'),
        (N'Korea Standard Time', N'Asia/Seoul'),
        (N'Libya Standard Time', N'Africa/Tripoli'),
        (N'Line Islands Standard Time', N'Etc/GMT-14 Pacific/Kiritimati'),
        (N'Lord Howe Standard Time', N'Australia/Lord_Howe'),
        (N'Magadan Standard Time', N'Asia/Magadan'),
        (N'Magallanes Standard Time', N'America/Punta_Arenas America/Coyhaique'),
        (N'Marquesas Standard Time', N'Pacific/Marquesas'),
        (N'Mauritius Standard Time', N'Indian/Mauritius Indian/Mahe Indian/Reunion'),
        (N'Middle East Standard Time', N'Asia/Beirut'),
        (N'Montevideo Standard Time', N'America/Montevideo'),
        (N'Morocco Standard Time', N'Africa/Casablanca Africa/El_Aaiun'),
        (N'Mountain Standard Time', N'America/Denver America/Boise America/Edmonton'),
        (N'Mountain Standard Time', N'America/Cambridge_Bay America/Inuvik America/Ciudad_Juarez'),
        (N'Mountain Standard Time', N'US/Mountain'),
        (N'Mountain Standard Time (Mexico)', N'America/Mazatlan'),
        (N'Myanmar Standard Time', N'Asia/Rangoon Asia/Yangon Indian/Cocos'),
        (N'N. Central Asia Standard Time', N'Asia/Novosibirsk'),
        (N'Namibia Standard Time', N'Africa/Windhoek'),
        (N'Nepal Standard Time', N'Asia/Katmandu Asia/Kathmandu'),
        (N'New Zealand Standard Time', N'Pacific/Auckland Antarctica/McMurdo NZ'),
        (N'Newfoundland Standard Time', N'America/St_Johns'),
        (N'Norfolk Standard Time', N'Pacific/Norfolk'),
        (N'North Asia East Standard Time', N'Asia/Irkutsk'),
        (N'North Asia Standard Time', N'Asia/Krasnoyarsk Asia/Novokuznetsk'),
        (N'North Korea Standard Time', N'Asia/Pyongyang'),
        (N'Omsk Standard Time', N'Asia/Omsk'),
        (N'Pacific SA Standard Time', N'America/Santiago'),
        (N'Pacific Standard Time', N'America/Los_Angeles America/Vancouver US/Pacific'),
        (N'Pacific Standard Time (Mexico)', N'America/Tijuana'),
        (N'Pakistan Standard Time', N'Asia/Karachi'),
        (N'Paraguay Standard Time', N'America/Asuncion'),
        (N'Qyzylorda Standard Time', N'Asia/Qyzylorda'),
        (N'Romance Standard Time', N'Europe/Paris Europe/Brussels Europe/Copenhagen Europe/Madrid'),
        (N'Romance Standard Time', N'Africa/Ceuta'),
        (N'Russia Time Zone 10', N'Asia/Srednekolymsk'),
        (N'Russia Time Zone 11', N'Asia/Kamchatka Asia/Anadyr'),
        (N'Russia Time Zone 3', N'Europe/Samara'),
        (N'Russian Standard Time', N'Europe/Moscow Europe/Kirov Europe/Simferopol'),
        (N'SA Eastern Standard Time', N'Etc/GMT+3 America/Cayenne America/Fortaleza'),
        (N'SA Eastern Standard Time', N'America/Recife America/Belem America/Maceio'),
        (N'SA Eastern Standard Time', N'America/Santarem America/Paramaribo Atlantic/Stanley'),
        (N'SA Pacific Standard Time', N'Etc/GMT+5 America/Bogota America/Lima America/Panama'),
        (N'SA Pacific Standard Time', N'America/Jamaica America/Guayaquil America/Cayman'),
        (N'SA Pacific Standard Time', N'America/Rio_Branco America/Eirunepe America/Coral_Harbour'),
        (N'SA Pacific Standard Time', N'America/Atikokan'),
        (N'SA Western Standard Time', N'Etc/GMT+4 America/La_Paz America/Puerto_Rico'),
        (N'SA Western Standard Time', N'America/Manaus America/Boa_Vista America/Porto_Velho'),
        (N'SA Western Standard Time', N'America/Santo_Domingo America/Barbados America/Martinique'),
        (N'SA Western Standard Time', N'America/Guadeloupe America/Curacao America/Aruba'),
        (N'SA Western Standard Time', N'America/Antigua America/Anguilla America/Blanc-Sablon'),
        (N'SA Western Standard Time', N'America/Dominica America/Grenada America/Guyana'),
        (N'SA Western Standard Time', N'America/Kralendijk America/Lower_Princes America/Marigot'),
        (N'SA Western Standard Time', N'America/Montserrat America/Port_of_Spain'),
        (N'SA Western Standard Time', N'America/St_Barthelemy America/St_Kitts America/St_Lucia'),
        (N'SA Western Standard Time', N'America/St_Thomas America/St_Vincent America/Tortola'),
        (N'SE Asia Standard Time', N'Etc/GMT-7 Asia/Bangkok Asia/Jakarta Asia/Saigon'),
        (N'SE Asia Standard Time', N'Asia/Ho_Chi_Minh Asia/Phnom_Penh Asia/Vientiane'),
        (N'SE Asia Standard Time', N'Asia/Pontianak Indian/Christmas'),
        (N'Saint Pierre Standard Time', N'America/Miquelon'),
        (N'Sakhalin Standard Time', N'Asia/Sakhalin'),
        (N'Samoa Standard Time', N'Pacific/Apia'),
        (N'Sao Tome Standard Time', N'Africa/Sao_Tome'),
        (N'Saratov Standard Time', N'Europe/Saratov'),
        (N'Singapore Standard Time', N'Etc/GMT-8 Asia/Singapore Asia/Kuala_Lumpur Asia/Manila'),
        (N'Singapore Standard Time', N'Asia/Brunei Asia/Kuching Asia/Makassar Singapore'),
        (N'South Africa Standard Time', N'Etc/GMT-2 Africa/Johannesburg Africa/Blantyre'),
        (N'South Africa Standard Time', N'Africa/Bujumbura Africa/Gaborone Africa/Harare'),
        (N'South Africa Standard Time', N'Africa/Kigali Africa/Lubumbashi Africa/Lusaka'),
        (N'South Africa Standard Time', N'Africa/Maputo Africa/Maseru Africa/Mbabane'),
        (N'South Sudan Standard Time', N'Africa/Juba'),
        (N'Sri Lanka Standard Time', N'Asia/Colombo'),
        (N'Sudan Standard Time', N'Africa/Khartoum'),
        (N'Syria Standard Time', N'Asia/Damascus'),
        (N'Taipei Standard Time', N'Asia/Taipei'),
        (N'Tasmania Standard Time', N'Australia/Hobart Australia/Currie'),
        (N'Tocantins Standard Time', N'America/Araguaina'),
        (N'Tokyo Standard Time', N'Etc/GMT-9 Asia/Tokyo Asia/Jayapura Asia/Dili Pacific/Palau'),
        (N'Tokyo Standard Time', N'Japan'),
        (N'Tomsk Standard Time', N'Asia/Tomsk'),
        (N'Tonga Standard Time', N'Pacific/Tongatapu'),
        (N'Transbaikal Standard Time', N'Asia/Chita'),
        (N'Turkey Standard Time', N'Europe/Istanbul Asia/Istanbul Turkey'),
        (N'Turks And Caicos Standard Time', N'America/Grand_Turk'),
        (N'US Eastern Standard Time', N'America/Indianapolis America/Indiana/Indianapolis'),
        (N'US Eastern Standard Time', N'America/Indiana/Marengo America/Indiana/Vevay'),
        (N'US Mountain Standard Time', N'Etc/GMT+7 America/Phoenix America/Creston'),
        (N'US Mountain Standard Time', N'America/Dawson_Creek America/Fort_Nelson'),
        (N'US Mountain Standard Time', N'America/Hermosillo US/Arizona'),
        (N'UTC', N'Etc/UTC Etc/GMT Etc/UCT Etc/Zulu Etc/Universal GMT UCT Zulu Universal'),
        (N'UTC+12', N'Etc/GMT-12 Pacific/Tarawa Pacific/Funafuti Pacific/Kwajalein Pacific/Majuro'),
        (N'UTC+12', N'Pacific/Nauru Pacific/Wake Pacific/Wallis'),
        (N'UTC+13', N'Etc/GMT-13 Pacific/Enderbury Pacific/Kanton Pacific/Fakaofo'),
        (N'UTC-02', N'Etc/GMT+2 America/Noronha Atlantic/South_Georgia'),
        (N'UTC-08', N'Etc/GMT+8 Pacific/Pitcairn'),
        (N'UTC-09', N'Etc/GMT+9 Pacific/Gambier'),
        (N'UTC-11', N'Etc/GMT+11 Pacific/Pago_Pago Pacific/Niue Pacific/Midway'),
        (N'Ulaanbaatar Standard Time', N'Asia/Ulaanbaatar Asia/Choibalsan'),
        (N'Venezuela Standard Time', N'America/Caracas'),
        (N'Vladivostok Standard Time', N'Asia/Vladivostok Asia/Ust-Nera'),
        (N'Volgograd Standard Time', N'Europe/Volgograd'),
        (N'W. Australia Standard Time', N'Australia/Perth'),
        (N'W. Central Africa Standard Time', N'Etc/GMT-1 Africa/Lagos Africa/Algiers'),
        (N'W. Central Africa Standard Time', N'Africa/Bangui Africa/Brazzaville Africa/Douala'),
        (N'W. Central Africa Standard Time', N'Africa/Kinshasa Africa/Libreville Africa/Luanda'),
        (N'W. Central Africa Standard Time', N'Africa/Malabo Africa/Ndjamena Africa/Niamey'),
        (N'W. Central Africa Standard Time', N'Africa/Porto-Novo Africa/Tunis'),
        (N'W. Europe Standard Time', N'Europe/Berlin Europe/Amsterdam Europe/Vienna Europe/Zurich'),
        (N'W. Europe Standard Time', N'Europe/Rome Europe/Stockholm Europe/Oslo Europe/Luxembourg'),
        (N'W. Europe Standard Time', N'Europe/Monaco Europe/Malta Europe/Andorra Europe/Busingen'),
        (N'W. Europe Standard Time', N'Europe/Gibraltar Europe/San_Marino Europe/Vaduz'),
        (N'W. Europe Standard Time', N'Europe/Vatican Arctic/Longyearbyen'),
        (N'W. Mongolia Standard Time', N'Asia/Hovd'),
        (N'West Asia Standard Time', N'Etc/GMT-5 Asia/Tashkent Asia/Ashgabat Asia/Dushanbe'),
        (N'West Asia Standard Time', N'Asia/Samarkand Asia/Aqtau Asia/Aqtobe Asia/Atyrau'),
        (N'West Asia Standard Time', N'Asia/Oral Asia/Almaty Asia/Qostanay Indian/Kerguelen'),
        (N'West Asia Standard Time', N'Indian/Maldives'),
        (N'West Bank Standard Time', N'Asia/Hebron Asia/Gaza'),
        (N'West Pacific Standard Time', N'Etc/GMT-10 Pacific/Port_Moresby Pacific/Guam'),
        (N'West Pacific Standard Time', N'Pacific/Saipan Pacific/Truk Pacific/Chuuk'),
        (N'Yakutsk Standard Time', N'Asia/Yakutsk Asia/Khandyga'),
        (N'Yukon Standard Time', N'America/Whitehorse America/Dawson')
) v (windows_name, iana_names)
cross apply string_split(v.iana_names, N' ') i
where not exists (
    select 1
    from rowq.time_zone t
    where t.iana_name = i.value collate Latin1_General_100_BIN2
);
go

-- [file tables/topic_binding.sql]
-- A row says that a queue gets what is published under the topics that a pattern matches. Where a
-- pattern has no "*", a topic that begins with literal_head needs no other look. Bindings are few
-- and seldom change, and a producer keeps no lock on them. Whoever binds a queue, or unbinds it,
-- holds its part, shared. A second session that binds a queue to the same pattern waits for the
-- first and then adds no row (ignore_dup_key). The second index has all that a look asks for, so
-- that nobody goes from one index to the other in the opposite order of who changes them.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.topic_binding') is null
create table rowq.topic_binding (
    part_id       int not null,
    topic_pattern nvarchar(200) collate Latin1_General_100_BIN2 not null,
    word_count    smallint not null,
    has_rest      bit not null,
    literal_head  nvarchar(200) collate Latin1_General_100_BIN2 not null,
    like_pattern  nvarchar(400) collate Latin1_General_100_BIN2 null,
    constraint topic_binding_pk primary key clustered (part_id, topic_pattern)
        with (ignore_dup_key = on, allow_page_locks = off)
);
go
alter table rowq.topic_binding set (lock_escalation = disable);
go
if indexproperty(object_id(N'rowq.topic_binding'), N'topic_binding_head_ix', N'IndexID') is null
create nonclustered index topic_binding_head_ix
    on rowq.topic_binding (literal_head, part_id, topic_pattern)
    include (word_count, has_rest, like_pattern)
    with (allow_page_locks = off);
go

-- [file tables/finished.sql]
-- A row is a finished message of a queue that keeps an archive. It stays until the archive routine
-- has moved it, oldest first.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.finished') is null
create table rowq.finished (
    part_id     int not null,
    finished_at datetime2(6) not null,
    message_id  bigint not null,
    lane        smallint not null,
    attempt     smallint not null,
    state       nvarchar(20) collate Latin1_General_100_BIN2 not null,
    constraint finished_pk primary key clustered (part_id, finished_at, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.finished set (lock_escalation = disable);
go

-- [file tables/archived.sql]
-- A row is a finished message. There is one partition a day (UTC), which is truncated when no queue
-- needs it. The partition function begins without a day: one partition takes everything, and
-- maintain splits days off it before they hold anything. Both indexes are partitioned alike,
-- because truncating a partition requires it.
set quoted_identifier on;
set ansi_nulls on;
go
if not exists (select 1 from sys.partition_functions f where f.name = N'rowq_day')
create partition function rowq_day (datetime2(6)) as range right for values ();
go
if not exists (select 1 from sys.partition_schemes s where s.name = N'rowq_day')
create partition scheme rowq_day as partition rowq_day all to ([PRIMARY]);
go
if object_id(N'rowq.archived') is null
create table rowq.archived (
    part_id      int not null,
    finished_at  datetime2(6) not null,
    message_id   bigint not null,
    lane         smallint not null,
    attempt      smallint not null,
    enqueued_at  datetime2(6) not null,
    state        nvarchar(20) collate Latin1_General_100_BIN2 not null,
    message_type nvarchar(400) collate Latin1_General_100_BIN2 null,
    dedup_key    nvarchar(400) collate Latin1_General_100_BIN2 null,
    headers      nvarchar(max) collate Latin1_General_100_BIN2 null,
    body         nvarchar(max) collate Latin1_General_100_BIN2 null,
    body_binary  varbinary(max) null,
    group_key    nvarchar(400) collate Latin1_General_100_BIN2 null,
    constraint archived_pk primary key clustered (part_id, finished_at, message_id)
        with (ignore_dup_key = on, data_compression = page) on rowq_day (finished_at)
) on rowq_day (finished_at);
go
if not exists (
    select 1
    from sys.indexes i
    where i.object_id = object_id(N'rowq.archived')
      and i.name = N'archived_message_ix'
)
create nonclustered index archived_message_ix on rowq.archived (part_id, message_id)
    with (data_compression = page) on rowq_day (finished_at);
go
alter table rowq.archived set (lock_escalation = auto);
go

-- [file tables/sequential_keys.sql]
-- Every producer or consumer of a queue appends at the same place. SQL Server 2019 and newer can
-- bring order into the crowd at the last page (optimize_for_sequential_key); older servers do not
-- know the option.
set quoted_identifier on;
set ansi_nulls on;
go
declare @statement nvarchar(max);
if cast(serverproperty('EngineEdition') as int) in (5, 8)
    or cast(serverproperty('ProductMajorVersion') as int) >= 15
    select @statement = string_agg(
        cast(concat(
            N'alter index ', quotename(i.name), N' on rowq.',
            quotename(object_name(i.object_id)),
            N' set (optimize_for_sequential_key = on);'
        ) as nvarchar(max)),
        N' '
    )
    from sys.indexes i
    where i.object_id in (
              object_id(N'rowq.message'), object_id(N'rowq.ready'), object_id(N'rowq.claim'),
              object_id(N'rowq.leased')
          )
      and i.index_id = 1;
exec sys.sp_executesql @statement;
go

-- [file internal/add_part.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalAddPart
    @part_id int
as
begin
-- routine   InternalAddPart
-- purpose   Insert the part row, the gate and the lanes of a new queue.
-- promise   P13
-- locks     new rows only
-- differs   PostgreSQL opens lanes when they are first used
    set nocount on;
    insert into rowq.part (part_id) values (@part_id);
    insert into rowq.gate with (rowlock) (part_id) values (@part_id);

    -- The lanes of the default priority are open from the start, because most queues use no others.
    insert into rowq.lane with (rowlock) (part_id, lane, is_open)
    select @part_id, v.lane, iif(v.lane in (10, 11), 1, 0)
    from (
        values (-10), (-9), (-8), (-7), (-6), (-5), (-4), (-3), (-2), (-1), (0), (1), (2), (3),
               (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15), (16), (17), (18),
               (19)
    ) v (lane);
end
go

-- [file internal/admit.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalAdmit
    @part_id int,
    @max_leased int,
    @rate_limit int output,
    @rate_seconds float,
    @wanted int,
    @room int output
as
begin
-- routine   InternalAdmit
-- purpose   Return how many messages a dequeue may lease under its queue's limits, and the rate_limit by then; from then on it is alone until its transaction ends.
-- promise   P28 P29
-- locks     the gate of the queue
-- differs   PostgreSQL refuses an old snapshot: here a routine reads what is committed at any level
    set nocount on;
    declare @is_locked bit;
    declare @is_paused bit;

    -- Look first, because a poll of a queue without room shall neither wait nor lock the gate.
    exec rowq.InternalRoom
        @part_id, @max_leased, @rate_limit, @rate_seconds, @wanted, @room output;
    if @room = 0
        return;
    exec rowq.InternalLockGate @part_id, @is_locked output;
    set @room = 0;
    if @is_locked = 0
        return;

    -- Look again, in statements of their own: they begin after the lock was had, so they see what
    -- the session leased that held the gate before, and settings that were changed meanwhile.
    select @is_paused = iif(q.paused_at is null, 0, 1), @max_leased = q.max_leased,
           @rate_limit = q.rate_limit, @rate_seconds = q.rate_seconds
    from rowq.queue q
    where q.part_id = @part_id;
    if @is_paused = 0
        exec rowq.InternalRoom
            @part_id, @max_leased, @rate_limit, @rate_seconds, @wanted, @room output;
end
go

-- [file internal/archive.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalArchive
    @part_id int,
    @limit int,
    @archived int output
as
begin
-- routine   InternalArchive
-- purpose   Move up to @limit finished messages to the archive, oldest first.
-- promise   P19 P26
-- locks     finished rows, passing over locked ones; lane -3; message rows, tried only; new archive
--           rows; as InternalFreeSuccessors
    set nocount on;
    declare @floor bigint;
    declare @is_open bit;
    declare @since datetime2(6);
    declare @awaited_id bigint = 0;
    declare @moved table (
        message_id  bigint not null primary key,
        finished_at datetime2(6) not null,
        lane        smallint not null,
        attempt     smallint not null,
        state       nvarchar(20) collate Latin1_General_100_BIN2 not null
    );
    declare @held table (
        message_id bigint not null primary key,
        is_awaited bit not null
    );

    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -3;
    exec rowq.InternalFromMicroseconds @floor, @since output;

    -- A guest's call that is broken off between these statements leaves a row of finished, and the
    -- next one does the rest: the archive passes over what it has already (ignore_dup_key).
    insert into @moved (message_id, finished_at, lane, attempt, state)
    select top (@limit) f.message_id, f.finished_at, f.lane, f.attempt, f.state
    from rowq.finished f with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where f.part_id = @part_id
      and f.finished_at >= @since
    order by f.finished_at, f.message_id
    option (maxdop 1, keepfixed plan);
    set @archived = @@rowcount;
    if @archived = 0
        return;

    -- Leave a message alone while a producer is adding one that waits for it.
    insert into @held (message_id, is_awaited)
    select m.message_id, iif(s.predecessor_id is null, 0, 1)
    from @moved j
    inner join rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
    outer apply (
        select top (1) x.predecessor_id
        from rowq.successor x with (rowlock, readcommittedlock, forceseek)
        where x.part_id = @part_id
          and x.predecessor_id = m.message_id
    ) s
    option (loop join, force order, maxdop 1);
    if @@rowcount < @archived
    begin
        delete j
        from @moved j
        inner join rowq.message m with (forceseek)
            on m.part_id = @part_id
           and m.message_id = j.message_id
        where not exists (select 1 from @held h where h.message_id = j.message_id)
        option (loop join, force order, maxdop 1);
        select @archived = count(*) from @moved;
        if @archived = 0
            return;
    end;

    -- Lane -3 is open while the queue may have archived messages, and this lock keeps maintain from
    -- closing it before this transaction ends.
    select @is_open = l.is_open
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -3;
    -- Of two sessions that hold the row shared neither could open the lane, so whoever may have to
    -- open it takes the row for itself at once.
    if @is_open = 1
        select @is_open = l.is_open
        from rowq.lane l with (rowlock, repeatableread, forceseek)
        where l.part_id = @part_id
          and l.lane = -3;
    if @is_open = 0
        update rowq.lane with (rowlock)
        set is_open = 1
        where part_id = @part_id
          and lane = -3;

    insert into rowq.archived with (rowlock) (
        part_id, finished_at, message_id, lane, attempt, enqueued_at, state, message_type,
        dedup_key, headers, body, body_binary, group_key
    )
    select @part_id, j.finished_at, j.message_id, j.lane, j.attempt, m.enqueued_at, j.state,
           m.message_type, m.dedup_key, m.headers, m.body, m.body_binary, m.group_key
    from @moved j
    inner join rowq.message m with (forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
    option (loop join, force order, maxdop 1);
    delete m
    from @moved j
    inner join rowq.message m with (rowlock, forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
    option (loop join, force order, maxdop 1);
    delete f
    from @moved j
    inner join rowq.finished f with (rowlock, forceseek)
        on f.part_id = @part_id
       and f.finished_at = j.finished_at
       and f.message_id = j.message_id
    option (loop join, force order, maxdop 1);

    -- The end of a message did not see what its producer had not committed then.
    while 1 = 1
    begin
        select top (1) @awaited_id = h.message_id
        from @held h
        where h.message_id > @awaited_id
          and h.is_awaited = 1
        order by h.message_id;
        if @@rowcount = 0
            break;
        exec rowq.InternalFreeSuccessors @part_id, @awaited_id, @may_join = 0;
    end;
end
go

-- [file internal/await_predecessor.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalAwaitPredecessor
    @part_id int,
    @predecessor_ids nvarchar(max),
    @on_dead nvarchar(20),
    @state nvarchar(20) output,
    @predecessor_id bigint output,
    @rest_ids nvarchar(max) output
as
begin
-- routine   InternalAwaitPredecessor
-- purpose   Find the newest of these that has not ended, and hold it: waiting, free, failed, or unsure where others are at work.
-- promise   P25 P26 P27
-- locks     the predecessor's message row, shared, tried only
-- differs   elsewhere it also notes that the message waits
    set nocount on;
    declare @before bigint = 9223372036854775807;
    declare @floor bigint;
    declare @since datetime2(6);
    declare @dead_id bigint;
    declare @has_ended bit;
    declare @ids table (message_id bigint not null primary key);
    declare @ended table (message_id bigint not null primary key);
    set @state = null;
    set @rest_ids = null;

    insert into @ids (message_id)
    select distinct cast(j.value as bigint) from openjson(@predecessor_ids) j;
    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -3;
    exec rowq.InternalFromMicroseconds @floor, @since output;

    -- A row that another session has locked is error 1222 (nowait): it must not look like one that
    -- is not there. Without xact_abort that error ends no transaction. The option is off only here,
    -- where nothing is written, and where nothing waits, so that no client's timeout comes.
    set xact_abort off;
    while @state is null
    begin
        begin try
            -- Hold the row to the end of the transaction (repeatableread): whoever ends the
            -- predecessor waits for this one, or leaves a note to look again.
            set @predecessor_id = null;
            set @dead_id = null;
            set @has_ended = 0;
            select top (1) @predecessor_id = m.message_id
            from @ids j
            inner join rowq.message m with (rowlock, repeatableread, nowait, forceseek)
                on m.part_id = @part_id
               and m.message_id = j.message_id
            where j.message_id < @before
            order by j.message_id desc
            option (loop join, force order, maxdop 1);
            if @predecessor_id is not null and @on_dead in (N'continue', N'fail')
                select @dead_id = d.message_id
                from rowq.dead d with (rowlock, readcommittedlock, nowait, forceseek)
                where d.part_id = @part_id
                  and d.message_id = @predecessor_id;

            -- The archive keeps the message row for a while. Where the end is not seen here, the
            -- archiver frees what waits when it deletes the row.
            if @predecessor_id is not null
                select top (1) @has_ended = 1
                from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
                where f.part_id = @part_id
                  and f.finished_at >= @since
                  and f.message_id = @predecessor_id
                option (maxdop 1);
            if @has_ended = 1
            begin
                -- Thousands may have ended since the archiver was here: leave all of them out at
                -- once.
                delete from @ended;
                insert into @ended (message_id)
                select distinct f.message_id
                from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
                inner join @ids j on j.message_id = f.message_id
                where f.part_id = @part_id
                  and f.finished_at >= @since
                option (hash join, force order, maxdop 1);
                delete j
                from @ids j
                inner join @ended e on e.message_id = j.message_id;
            end;

            set @state = case
                when @predecessor_id is null then N'free'
                when @has_ended = 1 then null
                when @dead_id is null then N'waiting'
                when @on_dead = N'fail' then N'failed'
            end;
            if @state is null
                set @before = @predecessor_id;
        end try
        begin catch
            if error_number() <> 1222
                throw;
            set @state = N'unsure';
            set @predecessor_id = null;
        end catch;
    end;

    if @state in (N'waiting', N'unsure')
        select @rest_ids = N'[' + string_agg(cast(j.message_id as nvarchar(max)), N',')
                   within group (order by j.message_id desc) + N']'
        from @ids j
        where j.message_id < coalesce(@predecessor_id, @before);
end
go

-- [file internal/block.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalBlock
    @part_id int,
    @message_id bigint,
    @lane smallint,
    @due_at datetime2(6),
    @group_key varbinary(802),
    @on_dead nvarchar(20),
    @state nvarchar(20),
    @predecessor_id bigint,
    @rest_ids nvarchar(max)
as
begin
-- routine   InternalBlock
-- purpose   Let a new message wait for a predecessor, or fail with it, as InternalAwaitPredecessor has found.
-- promise   P25 P26 P27 P32
-- locks     new blocked, successor, recheck, dead and result rows; its own message and dedup rows
    set nocount on;
    declare @ties rowq.tie_list;
    declare @ended rowq.message_list;

    if @state = N'failed'
    begin
        insert into rowq.dead with (rowlock) (part_id, message_id, lane, attempt, died_at)
        values (@part_id, @message_id, @lane, 0, sysutcdatetime());
        update m
        set last_error = concat(N'predecessor ', @predecessor_id, N' is dead')
        from rowq.message m with (rowlock, forceseek)
        where m.part_id = @part_id
          and m.message_id = @message_id
        option (maxdop 1);
        insert into @ended (message_id, lane, place, attempt) values (@message_id, @lane, 0, 0);
        exec rowq.InternalPushResult @part_id, @ended, N'dead';
        insert into @ties (message_id, dedup_key)
        select m.message_id, m.dedup_key
        from rowq.message m with (forceseek)
        where m.part_id = @part_id
          and m.message_id = @message_id
          and m.dedup_key is not null;
        if @@rowcount > 0
            exec rowq.InternalCutTies @part_id, @ties, @may_close = 0;
        return;
    end;

    if @state = N'waiting'
        insert into rowq.successor with (rowlock) (part_id, predecessor_id, message_id, on_dead)
        values (@part_id, @predecessor_id, @message_id, @on_dead);
    else
        insert into rowq.recheck with (rowlock) (part_id, due_at, recheck_id, message_id)
        values (@part_id, sysutcdatetime(), next value for rowq.message_seq, @message_id);
    insert into rowq.blocked with (rowlock) (
        part_id, message_id, lane, predecessor_id, due_at, on_dead, group_key, rest_ids
    )
    values (
        @part_id, @message_id, @lane, @predecessor_id, @due_at, @on_dead, @group_key, @rest_ids
    );
end
go

-- [file internal/block_batch.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalBlockBatch
    @part_id int,
    @messages nvarchar(max),
    @new rowq.new_list readonly
as
begin
-- routine   InternalBlockBatch
-- purpose   Let new messages of a batch wait for their predecessors, or fail with them; those that wait for none are left to the caller.
-- promise   P25 P26 P27
-- locks     as InternalAwaitPredecessor and InternalBlock
    set nocount on;
    declare @may_fail bit = 0;
    declare @message_id bigint = 0;
    declare @lane smallint;
    declare @due_at datetime2(6);
    declare @group_key varbinary(802);
    declare @on_dead nvarchar(20);
    declare @predecessor_ids nvarchar(max);
    declare @state nvarchar(20);
    declare @predecessor_id bigint;
    declare @rest_ids nvarchar(max);
    declare @edges table (
        message_id     bigint not null,
        predecessor_id bigint not null,
        primary key (message_id, predecessor_id)
    );
    -- own_id is the newest predecessor where that is a new message of this batch.
    declare @waiting table (
        message_id bigint not null primary key,
        lane       smallint not null,
        due_at     datetime2(6) null,
        group_key  varbinary(802) null,
        on_dead    nvarchar(20) collate Latin1_General_100_BIN2 null,
        own_id     bigint null
    );

    -- A duplicate stands for the message that has its key.
    insert into @edges (message_id, predecessor_id)
    select distinct n.message_id, coalesce(h.holder, cast(i.value as bigint))
    from openjson(@messages) e
    cross apply openjson(e.value) p
    cross apply openjson(
        iif(
            p.[key] in (N'predecessor_ids', N'predecessor_positions') and p.[type] = 4,
            p.value, N'[]'
        )
    ) i
    inner join @new n
        on n.position = cast(e.[key] as int) + 1
       and n.holder = n.message_id
    left join @new h
        on h.position = cast(iif(p.[key] = N'predecessor_positions', i.value, N'0') as int)
    option (maxdop 1);
    insert into @waiting (message_id, lane, due_at, group_key, on_dead, own_id)
    select w.message_id, n.lane, n.due_at, n.group_key, n.on_dead, o.message_id
    from (
        select g.message_id, max(g.predecessor_id) as newest_id
        from @edges g
        group by g.message_id
    ) w
    inner join @new n on n.message_id = w.message_id
    left join @new o
        on o.message_id = w.newest_id
       and o.holder = o.message_id
    option (hash join, maxdop 1);

    -- Nobody else sees a predecessor of this batch, so it can only have failed with another one.
    select @may_fail = 1 from @waiting w where w.own_id is null and w.on_dead = N'fail';
    if @may_fail = 0
    begin
        insert into rowq.successor with (rowlock) (part_id, predecessor_id, message_id, on_dead)
        select @part_id, w.own_id, w.message_id, w.on_dead
        from @waiting w
        where w.own_id is not null
        option (maxdop 1);
        insert into rowq.blocked with (rowlock) (
            part_id, message_id, lane, predecessor_id, due_at, on_dead, group_key, rest_ids
        )
        select @part_id, w.message_id, w.lane, w.own_id, w.due_at, w.on_dead, w.group_key, r.ids
        from @waiting w
        cross apply (
            select N'[' + string_agg(cast(g.predecessor_id as nvarchar(max)), N',')
                       within group (order by g.predecessor_id desc) + N']'
            from @edges g
            where g.message_id = w.message_id
              and g.predecessor_id < w.own_id
        ) r (ids)
        where w.own_id is not null
        option (maxdop 1);
        delete from @waiting where own_id is not null;
    end;

    while 1 = 1
    begin
        select top (1) @message_id = w.message_id, @lane = w.lane, @due_at = w.due_at,
               @group_key = w.group_key, @on_dead = w.on_dead
        from @waiting w
        where w.message_id > @message_id
        order by w.message_id;
        if @@rowcount = 0
            break;
        select @predecessor_ids = N'[' + string_agg(cast(g.predecessor_id as nvarchar(max)), N',')
                   + N']'
        from @edges g
        where g.message_id = @message_id;
        exec rowq.InternalAwaitPredecessor
            @part_id, @predecessor_ids, @on_dead, @state output, @predecessor_id output,
            @rest_ids output;
        if @state <> N'free'
            exec rowq.InternalBlock
                @part_id, @message_id, @lane, @due_at, @group_key, @on_dead, @state,
                @predecessor_id, @rest_ids;
    end;
end
go

-- [file internal/bound_queues.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalBoundQueues
    @messages nvarchar(max),
    @queues nvarchar(max) output
as
begin
-- routine   InternalBoundQueues
-- purpose   Return the queues that are bound to the topics of messages, in the order of their names, with the places of the messages, as JSON, and keep them from being dropped.
-- promise   P35
-- locks     the rows of their parts, shared, to the end of the transaction; waits for a drop
    set nocount on;
    declare @turn int = 0;
    declare @part_id int;
    declare @found_part_id int;
    declare @topics table (
        place      int not null primary key,
        topic      nvarchar(200) collate Latin1_General_100_BIN2 not null,
        word_count int not null
    );
    -- A head is the first words of a topic, as many as it says, and so many characters long.
    declare @heads table (
        place      int not null,
        word_count int not null,
        size       int not null,
        primary key (place, word_count)
    );
    declare @matches table (
        part_id int not null,
        place   int not null,
        primary key (part_id, place)
    );
    declare @bound table (
        turn            int not null primary key,
        part_id         int not null,
        queue_name      nvarchar(200) collate Latin1_General_100_BIN2 not null,
        max_body_length int not null,
        group_limit     int not null
    );

    insert into @topics (place, topic, word_count)
    select cast(e.[key] as int) + 1, t.topic, len(t.topic) - len(replace(t.topic, N'.', N'')) + 1
    from openjson(@messages) e
    cross apply (select cast(json_value(e.value, N'$.topic') as nvarchar(200))) t (topic)
    option (maxdop 1);
    insert into @heads (place, word_count, size)
    select t.place, 0, 0
    from @topics t
    union all
    select t.place, cast(w.[key] as int) + 1,
           sum(len(w.value) + 1) over (
               partition by t.place order by cast(w.[key] as int) rows unbounded preceding
           ) - 1
    from @topics t
    cross apply openjson(concat(N'["', replace(t.topic, N'.', N'","'), N'"]')) w
    option (maxdop 1);

    -- A pattern matches if the words before its first wildcard are the first ones of the topic, and
    -- if as many words as it has are like its own. No "%" swallows a dot there, because both sides
    -- have the same number of them.
    insert into @matches (part_id, place)
    select distinct b.part_id, t.place
    from @topics t
    inner join @heads h on h.place = t.place
    inner join rowq.topic_binding b with (forceseek) on b.literal_head = left(t.topic, h.size)
    inner join @heads w
        on w.place = t.place
       and w.word_count = b.word_count
    where (b.has_rest = 1 or b.word_count = t.word_count)
      and (b.like_pattern is null or left(t.topic, w.size) like b.like_pattern escape N'!')
    option (loop join, force order, maxdop 1);

    -- The bindings are read by a statement of their own, so that nobody holds one while it waits
    -- for the row of a queue. Names that differ in trailing blanks are equal to the engine.
    insert into @bound (turn, part_id, queue_name, max_body_length, group_limit)
    select row_number() over (order by q.queue_name, datalength(q.queue_name)), q.part_id,
           q.queue_name, q.max_body_length, q.group_limit
    from (select distinct m.part_id from @matches m) f
    inner join rowq.queue q with (forceseek) on q.part_id = f.part_id
    option (loop join, force order, maxdop 1);
    while 1 = 1
    begin
        set @turn += 1;
        select @part_id = f.part_id from @bound f where f.turn = @turn;
        if @@rowcount = 0
            break;
        -- Leave a queue out that another session has dropped since the look.
        set @found_part_id = null;
        select @found_part_id = p.part_id
        from rowq.part p with (rowlock, repeatableread, forceseek)
        where p.part_id = @part_id
        option (maxdop 1, keepfixed plan);
        if @found_part_id is null
            delete from @bound where turn = @turn;
    end;

    set @queues = (
        select f.part_id, f.queue_name, f.max_body_length, f.group_limit,
               json_query(
                   concat(
                       N'[',
                       (
                           select string_agg(cast(m.place as nvarchar(max)), N',')
                                      within group (order by m.place)
                           from @matches m
                           where m.part_id = f.part_id
                       ),
                       N']'
                   ),
                   N'$'
               ) as places
        from @bound f
        order by f.turn
        for json path
    );
    set @queues = coalesce(@queues, N'[]');
end
go

-- [file internal/check_batch_size.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckBatchSize
    @batch_size int
as
begin
-- routine   InternalCheckBatchSize
-- purpose   Refuse a housekeeping batch_size that is missing or outside 1 to 10000.
-- promise   P15
-- errors    RQ711
    set nocount on;
    exec rowq.InternalCheckRange N'batch_size', @batch_size, 1, 10000, @is_required = 1;
end
go

-- [file internal/check_bodies.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckBodies
    @given rowq.given_list readonly,
    @queues nvarchar(max)
as
begin
-- routine   InternalCheckBodies
-- purpose   Refuse the messages of publish_batch where a queue that is to get one does not take its body.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: each queue refuses it in its turn
    set nocount on;
    declare @shortest int;
    declare @fault nvarchar(400);
    declare @takers table (
        place      int not null,
        turn       int not null,
        max_length int not null,
        primary key (place, turn)
    );

    -- Most bodies are short enough for every queue.
    select top (1) @shortest = q.max_body_length
    from openjson(@queues) with (max_body_length int) q
    order by q.max_body_length;
    if not exists (
        select 1
        from @given g
        where g.name in (N'body', N'body_base64')
          and g.size > @shortest
    )
        return;

    insert into @takers (place, turn, max_length)
    select cast(p.value as int), cast(q.[key] as int),
           cast(json_value(q.value, N'$.max_body_length') as int)
    from openjson(@queues) q
    cross apply openjson(q.value, N'$.places') p
    option (maxdop 1);
    select top (1) @fault = concat(
        N'body is ', g.size, N' long, and ',
        (
            select json_value(q.value, N'$.queue_name')
            from openjson(@queues) q
            where q.[key] = cast(t.turn as nvarchar(10))
        ),
        N' takes ', t.max_length, N': max_body_length (message ', g.position, N')'
    )
    from @given g
    inner join @takers t
        on t.place = g.position
       and t.max_length < g.size
    where g.name in (N'body', N'body_base64')
      and g.size > @shortest
    order by g.position, t.turn
    option (loop join, force order, maxdop 1);
    if @fault is not null
        exec rowq.InternalRefuse @fault;
end
go

-- [file internal/check_body.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckBody
    @body nvarchar(max),
    @body_binary varbinary(max),
    @max_length int
as
begin
-- routine   InternalCheckBody
-- purpose   Refuse a body that is longer than its queue takes.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @length bigint = datalength(@body_binary);
    declare @fault nvarchar(200);

    -- The collation counts an emoji as one character. It counts slowly, so use it only where the
    -- body has more UTF-16 units than the queue allows characters.
    if datalength(@body) / 2 > @max_length
        set @length = len((@body + N'.') collate Latin1_General_100_CI_AS_SC) - 1;
    if @length > @max_length
    begin
        set @fault = concat(
            N'body is ', @length, N' long, and the queue takes ', @max_length, N': max_body_length'
        );
        exec rowq.InternalRefuse @fault;
    end;
end
go

-- [file internal/check_given.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckGiven
    @given rowq.given_list readonly,
    @max_body_length int,
    @is_published bit
as
begin
-- routine   InternalCheckGiven
-- purpose   Refuse a batch with an invalid message, and say which one; topics of published ones are for InternalCheckTopics.
-- promise   P15 P20
-- errors    RQ711
    set nocount on;
    declare @fault nvarchar(200);

    -- kind is openjson's type: 0 null, 1 text, 2 number, 3 boolean, 4 array, 5 object.
    select top (1) @fault = concat(left(f.fault, 100), N' (message ', g.position, N')')
    from @given g
    cross apply (
        select case
            when g.name is null
                then iif(g.kind = 5, null, N'a message must be a JSON object')
            when g.name not in (
                    N'body', N'body_base64', N'message_type', N'headers', N'priority',
                    N'delay_seconds', N'run_at', N'dedup_key', N'max_attempts', N'group_key',
                    N'predecessor_ids', N'predecessor_positions', N'on_predecessor_dead', N'topic',
                    N'expire_seconds'
                )
                or g.name like N'% '
                or g.name = N'topic' and @is_published = 0
                then concat(N'unknown key ', g.name)
            when @is_published = 1
                and g.name in (
                    N'predecessor_ids', N'predecessor_positions', N'on_predecessor_dead'
                )
                then N'a published message has no predecessors'
            when g.kind = 0
                then null
            when g.name in (N'body', N'body_base64') and g.size > @max_body_length
                then concat(
                    N'body is ', g.size, N' long, and the queue takes ', @max_body_length,
                    N': max_body_length'
                )
            when g.name = N'body'
                then null
            when g.name = N'headers' and g.kind = 5
                then iif(g.size > 65536, N'headers are longer than 65536 characters', null)
            when g.name = N'headers'
                then N'headers must be an object'
            when g.name in (N'priority', N'max_attempts')
                and (g.kind <> 2 or g.value like N'%[^0-9-]%' or try_cast(g.value as int) is null)
                then concat(g.name, N' must be an integer, got ', left(g.value, 40))
            when g.name = N'priority'
                then iif(
                    try_cast(g.value as int) between 0 and 9, null,
                    concat(N'priority must be between 0 and 9, got ', g.value)
                )
            when g.name = N'max_attempts'
                then iif(
                    try_cast(g.value as int) between 1 and 10000, null,
                    concat(N'max_attempts must be between 1 and 10000, got ', g.value)
                )
            when g.name = N'delay_seconds'
                then case
                    when g.kind <> 2 or try_cast(g.value as float) is null
                        then N'delay_seconds must be a number'
                    when try_cast(g.value as float) not between 0 and 315360000
                        then concat(
                            N'delay_seconds must be between 0 and 315360000, got ',
                            left(g.value, 40)
                        )
                end
            when g.name = N'expire_seconds'
                then case
                    when g.kind <> 2 or try_cast(g.value as float) is null
                        then N'expire_seconds must be a number'
                    when try_cast(g.value as float) not between 0.001e0 and 315360000
                        then concat(
                            N'expire_seconds must be between 0.001 and 315360000, got ',
                            left(g.value, 40)
                        )
                end
            when g.name in (N'predecessor_ids', N'predecessor_positions')
                then iif(g.kind = 4, null, concat(g.name, N' must be an array'))
            when g.kind <> 1
                then concat(g.name, N' must be a string')
            when g.name = N'on_predecessor_dead'
                and g.value + N'.' not in (N'hold.', N'continue.', N'fail.')
                then N'on_predecessor_dead must be hold, continue or fail'
            when g.name = N'message_type' and g.size > 200
                then N'message_type is longer than 200 characters'
            when g.name in (N'dedup_key', N'group_key') and g.size not between 1 and 200
                then concat(g.name, N' must be 1 to 200 characters')
            when g.name = N'body_base64' and g.is_base64 = 0
                then N'body_base64 is not base64'
            when g.name = N'run_at' and g.moment is null
                then concat(N'run_at is no moment: ', left(g.value, 40))
            when g.name = N'run_at' and g.moment > dateadd(day, 3650, sysutcdatetime())
                then N'run_at must be a moment within the next ten years'
        end
    ) f (fault)
    where f.fault is not null
    order by g.position;
    if @fault is not null
        exec rowq.InternalRefuse @fault;

    select top (1) @fault = concat(
        iif(
            h.bodies > 1, N'body and body_base64 exclude each other',
            N'delay_seconds and run_at exclude each other'
        ),
        N' (message ', h.position, N')'
    )
    from (
        select g.position,
               sum(iif(g.name in (N'body', N'body_base64'), 1, 0)) as bodies,
               sum(iif(g.name in (N'delay_seconds', N'run_at'), 1, 0)) as times
        from @given g
        where g.kind > 0
        group by g.position
    ) h
    where h.bodies > 1 or h.times > 1
    order by h.position;
    if @fault is not null
        exec rowq.InternalRefuse @fault;
end
go

-- [file internal/check_headers.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckHeaders
    @messages nvarchar(max),
    @is_batch bit,
    @name nvarchar(20) = N'headers',
    @deepest int = 20
as
begin
-- routine   InternalCheckHeaders
-- purpose   Refuse headers, in an array of messages, that not every JSON reader would accept. What else is to be looked at stands in headers, too, with its @name and the depth that makes for it.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: part of message_fault
    set nocount on;
    declare @fault nvarchar(200);

    -- kind is openjson's type: 2 number, 4 array, 5 object.
    with found (depth, position, kind, value) as (
        select 2, cast(e.[key] as int) + 1, j.[type], j.value
        from openjson(@messages) e
        cross apply openjson(e.value) h
        cross apply openjson(iif(h.[key] = N'headers' and h.[type] = 5, h.value, N'{}')) j
        union all
        select f.depth + 1, f.position, j.[type], j.value
        from found f
        cross apply openjson(iif(f.kind in (4, 5), f.value, N'{}')) j
        where f.depth <= @deepest
          and f.kind in (4, 5)
    )
    select top (1) @fault = concat(
        case
            when f.depth > @deepest then @name + N' are nested more than 20 deep'
            else @name + N' have a number of too many digits'
        end,
        iif(@is_batch = 1, concat(N' (message ', f.position, N')'), N'')
    )
    from found f
    cross apply (
        select left(f.value, patindex(N'%[eE]%', f.value + N'e') - 1) as digits,
               stuff(f.value, 1, patindex(N'%[eE]%', f.value + N'e'), N'') as exponent
    ) n
    where f.depth > @deepest
       or f.kind = 2 and len(replace(replace(n.digits, N'-', N''), N'.', N'')) > 100
       or f.kind = 2
          and len(n.exponent) > 0
          and coalesce(try_cast(n.exponent as int), 201) not between -200 and 200
    order by f.position, f.depth desc
    option (maxdop 1);
    if @fault is not null
        exec rowq.InternalRefuse @fault;
end
go

-- [file internal/check_ids.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckIds
    @message_ids nvarchar(max),
    @name nvarchar(40) = N'message_ids'
as
begin
-- routine   InternalCheckIds
-- purpose   Refuse a list of messages that is no JSON array of ids, or too long; null passes.
-- promise   P15
-- errors    RQ711
-- differs   other engines that have arrays check only their length
    set nocount on;
    declare @count int;
    declare @good int;
    declare @fault nvarchar(200) = concat(
        @name, N' must be a flat list of at most 10000 ids, no null'
    );
    if @message_ids is null
        return;

    -- openjson reports an array as type 4 and a number as type 2. It raises an error for text that
    -- is not JSON or is nested more than 128 deep, so isjson looks first: at the list alone, and at
    -- the list inside another array, as it is read here.
    if isjson(@message_ids) = 1 and isjson(concat(N'[', @message_ids, N']')) = 1
    begin
        if 4 = (select top (1) j.[type] from openjson(concat(N'[', @message_ids, N']')) j)
            select @count = count(*),
                   @good = sum(
                       iif(j.[type] = 2 and try_cast(j.value as bigint) is not null, 1, 0)
                   )
            from openjson(@message_ids) j;
    end;
    if @count is null or @count > 10000 or @good < @count
        exec rowq.InternalRefuse @fault;
end
go

-- [file internal/check_message.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckMessage
    @message_type nvarchar(max),
    @headers nvarchar(max),
    @priority int,
    @delay_seconds float,
    @run_at datetime2(6),
    @dedup_key nvarchar(max),
    @max_attempts int,
    @group_key nvarchar(max),
    @predecessor_ids nvarchar(max),
    @on_predecessor_dead nvarchar(max),
    @expire_seconds float
as
begin
-- routine   InternalCheckMessage
-- purpose   Refuse invalid arguments of enqueue.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @fault nvarchar(200);
    declare @is_object bit = 0;

    if @priority is null or @priority not between 0 and 9
        exec rowq.InternalCheckRange N'priority', @priority, 0, 9, @is_required = 1;
    if @delay_seconds not between 0 and 315360000
        exec rowq.InternalCheckRange N'delay_seconds', @delay_seconds, 0, 315360000;
    if @max_attempts not between 1 and 10000
        exec rowq.InternalCheckRange N'max_attempts', @max_attempts, 1, 10000;
    if @expire_seconds not between 0.001e0 and 315360000
        exec rowq.InternalCheckRange N'expire_seconds', @expire_seconds, 0.001e0, 315360000;

    -- openjson reports an object as type 5. It raises an error for text that is not JSON or is
    -- nested more than 128 deep, so isjson looks first: at the headers alone, and at the headers as
    -- deep inside other JSON as they are ever read.
    if isjson(@headers) = 1 and isjson(concat(N'[{"headers":', @headers, N'}]')) = 1
        select @is_object = iif(max(j.[type]) = 5, 1, 0)
        from openjson(concat(N'[', @headers, N']')) j;

    -- A dot at the end makes trailing blanks count. The collation counts an emoji as one character.
    set @fault = case
        when @message_type is not null
            and len((@message_type + N'.') collate Latin1_General_100_CI_AS_SC) > 201
            then N'message_type is longer than 200 characters'
        when @headers is not null and @is_object = 0
            then N'headers must be a JSON object'
        when datalength(@headers) / 2 > 65536
            and len((@headers + N'.') collate Latin1_General_100_CI_AS_SC) > 65537
            then N'headers are longer than 65536 characters'
        when @delay_seconds is not null and @run_at is not null
            then N'delay_seconds and run_at exclude each other'
        when @run_at > dateadd(day, 3650, sysutcdatetime())
            then N'run_at must be a moment within the next ten years'
        when @dedup_key is not null
            and len((@dedup_key + N'.') collate Latin1_General_100_CI_AS_SC) not between 2 and 201
            then N'dedup_key must be 1 to 200 characters'
        when @group_key is not null
            and len((@group_key + N'.') collate Latin1_General_100_CI_AS_SC) not between 2 and 201
            then N'group_key must be 1 to 200 characters'
        when (@on_predecessor_dead + N'.') collate Latin1_General_100_BIN2
            not in (N'hold.', N'continue.', N'fail.')
            then N'on_predecessor_dead must be hold, continue or fail'
    end;
    if @fault is not null
        exec rowq.InternalRefuse @fault;
    if @predecessor_ids is not null
        exec rowq.InternalCheckIds @predecessor_ids, N'predecessor_ids';

    if @headers is not null
    begin
        set @headers = concat(N'[{"headers":', @headers, N'}]');
        exec rowq.InternalCheckHeaders @headers, @is_batch = 0;
    end;
end
go

-- [file internal/check_name.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckName
    @name nvarchar(100),
    @value nvarchar(max)
as
begin
-- routine   InternalCheckName
-- purpose   Refuse a bad name of a queue or a schedule; @name is that of the parameter.
-- promise   P15
-- errors    RQ711
-- differs   elsewhere a regular expression says it
    set nocount on;
    declare @size int = len((@value + N'.') collate Latin1_General_100_CI_AS_SC) - 1;
    declare @place int = 1;
    declare @code int;
    declare @is_bad bit = iif(@size between 1 and 100, 0, 1);
    declare @fault nvarchar(200);

    -- The control characters are 0 to 31 and 127 to 159.
    while @is_bad = 0 and @place <= datalength(@value) / 2
    begin
        set @code = unicode(substring(@value collate Latin1_General_100_BIN2, @place, 1));
        set @is_bad = iif(@code between 0 and 31 or @code between 127 and 159, 1, 0);
        set @place += 1;
    end;
    if @is_bad = 1
    begin
        set @fault = concat(@name, N' must be 1 to 100 characters, none of them control');
        exec rowq.InternalRefuse @fault;
    end;
end
go

-- [file internal/check_range.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckRange
    @name nvarchar(100),
    @value float,
    @low float,
    @high float,
    @is_required bit = 0
as
begin
-- routine   InternalCheckRange
-- purpose   Refuse a number outside its range; null passes unless it is required.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @given nvarchar(40);
    declare @fault nvarchar(400);
    if @value between @low and @high or @value is null and @is_required = 0
        return;

    -- A float that becomes text directly loses digits: 315360000.5 would become 3.1536e+008.
    set @given = N'null';
    if abs(@value) >= 1e15
        set @given = convert(nvarchar(40), @value);
    else if @value is not null
    begin
        -- A caller may have numeric_roundabort on: then the rounding below would raise an error of
        -- the engine instead of our refusal.
        set numeric_roundabort off;
        set @given = convert(nvarchar(40), cast(@value as decimal(38, 6)));
        set @given = replace(rtrim(replace(@given, N'0', N' ')), N' ', N'0');
        if right(@given, 1) = N'.'
            set @given = left(@given, len(@given) - 1);
    end;
    set @fault = concat(
        @name, N' must be between ',
        case @low
            when 0.1e0 then N'0.1'
            when 0.001e0 then N'0.001'
            else convert(nvarchar(40), cast(@low as bigint))
        end,
        N' and ',
        cast(@high as bigint), N', got ', @given
    );
    exec rowq.InternalRefuse @fault;
end
go

-- [file internal/check_results.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckResults
    @results nvarchar(max),
    @count int,
    @result_seconds float
as
begin
-- routine   InternalCheckResults
-- purpose   Refuse results that are not @count good ones, or that the queue does not keep.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @longest int = 1048576;
    declare @kind int;
    declare @given int;
    declare @fault nvarchar(200);

    if @result_seconds = 0
        exec rowq.InternalRefuse N'the queue keeps no results: its result_seconds is 0';
    -- openjson reports an array as type 4. It raises an error for text that is not JSON or is
    -- nested more than 128 deep, so isjson looks first: at the array alone, and at the array as
    -- deep inside other JSON as it is read below.
    if isjson(@results) = 1 and isjson(concat(N'[{"headers":{"results":', @results, N'}}]')) = 1
        select @kind = max(j.[type])
        from openjson(concat(N'[', @results, N']')) j;
    if @kind is null or @kind <> 4
        exec rowq.InternalRefuse N'results must be a JSON array';

    select @given = count(*) from openjson(@results) j;
    if @given <> @count
        set @fault = concat(N'results are ', @given, N', and message_ids are ', @count);
    -- The collation counts an emoji as one character. It counts slowly, so use it only where there
    -- are more UTF-16 units than characters are allowed. A text has its two quotes besides.
    else if datalength(@results) / 2 > @longest
        select top (1) @fault = concat(N'a result is longer than ', @longest, N' characters')
        from openjson(@results) j
        where datalength(j.value) / 2 + 2 > @longest
          and len((j.value + N'.') collate Latin1_General_100_CI_AS_SC) - 1
              + iif(j.[type] = 1, 2, 0) > @longest;
    if @fault is not null
        exec rowq.InternalRefuse @fault;

    -- A result may be 20 deep, and stands two levels below the headers.
    set @results = concat(N'[{"headers":{"results":', @results, N'}}]');
    exec rowq.InternalCheckHeaders @results, @is_batch = 0, @name = N'results', @deepest = 22;
end
go

-- [file internal/check_schedule.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckSchedule
    @schedule_name nvarchar(max),
    @cron nvarchar(max),
    @interval_seconds float,
    @time_zone nvarchar(max),
    @missed nvarchar(max),
    @starts_at datetime2(6),
    @ends_at datetime2(6),
    @message_type nvarchar(max),
    @headers nvarchar(max),
    @priority int,
    @max_attempts int,
    @group_key nvarchar(max),
    @body nvarchar(max),
    @body_binary varbinary(max),
    @max_body_length int,
    @next_run_at datetime2(6) output
as
begin
-- routine   InternalCheckSchedule
-- purpose   Refuse a schedule with a bad name, time or message, or without a tick to come; @next_run_at is the first one.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @fault nvarchar(200);
    declare @tick_headers nvarchar(max);
    declare @windows_name nvarchar(128);
    declare @bits nvarchar(200);

    exec rowq.InternalCheckName N'schedule_name', @schedule_name;
    -- A dot at the end makes trailing blanks count.
    set @fault = case
        when @cron is null and @interval_seconds is null
            or @cron is not null and @interval_seconds is not null
            then N'a schedule has either cron or interval_seconds'
        when @missed is null
            or (@missed + N'.') collate Latin1_General_100_BIN2
                not in (N'skip.', N'once.', N'all.')
            then concat(
                N'missed must be skip, once or all, got ', coalesce(left(@missed, 100), N'null')
            )
        when @starts_at not between '20000101' and '21000101'
            or @ends_at not between '20000101' and '21000101'
            then N'starts_at and ends_at must be moments between the years 2000 and 2100'
        when @body is not null and @body_binary is not null
            then N'body and body_binary exclude each other'
    end;
    if @fault is not null
        exec rowq.InternalRefuse @fault;
    exec rowq.InternalCheckRange N'interval_seconds', @interval_seconds, 1, 315360000;

    exec rowq.InternalCheckMessage
        @message_type, @headers, @priority, null, null, null, @max_attempts, @group_key, null, null,
        null;
    -- What a tick adds to the headers may make them too long.
    exec rowq.InternalTickHeaders @headers, @schedule_name, @now, @tick_headers output;
    if datalength(@tick_headers) / 2 > 65536
        exec rowq.InternalCheckMessage
            @message_type, @tick_headers, @priority, null, null, null, @max_attempts, @group_key,
            null, null, null;
    exec rowq.InternalCheckBody @body, @body_binary, @max_body_length;

    exec rowq.InternalCheckTimeZone @time_zone, @windows_name output;
    if @cron is not null
        exec rowq.InternalParseCron @cron, @bits output;
    exec rowq.InternalNextTick
        @bits, @interval_seconds, @windows_name, @starts_at, @ends_at, @now, @next_run_at output;
    if @next_run_at is null
        exec rowq.InternalRefuse
            N'the schedule has no tick within ten years or before ends_at';
end
go

-- [file internal/check_settings.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckSettings
    @queue_name nvarchar(max),
    @lease_seconds int,
    @max_attempts int,
    @backoff_base_seconds float,
    @backoff_factor float,
    @backoff_cap_seconds float,
    @backoff_jitter float,
    @archive_days int,
    @max_body_length int,
    @group_limit int,
    @group_after_dead nvarchar(max),
    @group_pause_seconds float,
    @max_leased int,
    @rate_limit int,
    @rate_seconds float,
    @result_seconds float,
    @history_days int
as
begin
-- routine   InternalCheckSettings
-- purpose   Refuse a bad queue name or a setting out of range; null passes for settings.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @fault nvarchar(200);

    exec rowq.InternalCheckName N'queue_name', @queue_name;
    exec rowq.InternalCheckRange N'lease_seconds', @lease_seconds, 1, 86400;
    exec rowq.InternalCheckRange N'max_attempts', @max_attempts, 1, 10000;
    exec rowq.InternalCheckRange N'backoff_base_seconds', @backoff_base_seconds, 0, 86400;
    exec rowq.InternalCheckRange N'backoff_factor', @backoff_factor, 1, 10;
    exec rowq.InternalCheckRange N'backoff_cap_seconds', @backoff_cap_seconds, 0, 31536000;
    exec rowq.InternalCheckRange N'backoff_jitter', @backoff_jitter, 0, 1;
    exec rowq.InternalCheckRange N'archive_days', @archive_days, 0, 36500;
    exec rowq.InternalCheckRange N'max_body_length', @max_body_length, 1, 33554432;
    exec rowq.InternalCheckRange N'group_limit', @group_limit, 1, 100;
    exec rowq.InternalCheckRange N'group_pause_seconds', @group_pause_seconds, 0, 86400;
    exec rowq.InternalCheckRange N'max_leased', @max_leased, 0, 100000;
    exec rowq.InternalCheckRange N'rate_limit', @rate_limit, 0, 100000;
    exec rowq.InternalCheckRange N'rate_seconds', @rate_seconds, 0.1e0, 86400;
    exec rowq.InternalCheckRange N'result_seconds', @result_seconds, 0, 31536000;
    exec rowq.InternalCheckRange N'history_days', @history_days, 0, 36500;
    -- A dot at the end makes trailing blanks count.
    if (@group_after_dead + N'.') collate Latin1_General_100_BIN2
        not in (N'continue.', N'hold.')
    begin
        set @fault = concat(
            N'group_after_dead must be continue or hold, got ', left(@group_after_dead, 100)
        );
        exec rowq.InternalRefuse @fault;
    end;
end
go

-- [file internal/check_tick.sql]
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
    option (maxdop 1);
    exec rowq.InternalCheckTimeZone @time_zone, @windows_name output;

    -- Most bodies are short enough, and are not read.
    select @body = s.body, @body_binary = s.body_binary, @max_body_length = q.max_body_length
    from rowq.schedule s with (forceseek)
    inner join rowq.queue q on q.part_id = s.part_id
    where s.part_id = @part_id
      and s.schedule_key = @schedule_key
      and (
          datalength(s.body) / 2 > q.max_body_length
          or datalength(s.body_binary) > q.max_body_length
      )
    option (loop join, maxdop 1);
    if @@rowcount > 0
        exec rowq.InternalCheckBody @body, @body_binary, @max_body_length;
end
go

-- [file internal/check_time_zone.sql]
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
        set @fault = concat(
            N'time_zone must be a name such as Europe/Berlin that the server knows, got ',
            coalesce(left(@time_zone, 100), N'null')
        );
        exec rowq.InternalRefuse @fault;
    end;
end
go

-- [file internal/check_topics.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckTopics
    @given rowq.given_list readonly
as
begin
-- routine   InternalCheckTopics
-- purpose   Refuse the messages of publish_batch where one has no topic or a bad one, and say which.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: topics are checked with the rest of a message
    set nocount on;
    declare @turn int = 0;
    declare @place int;
    declare @topic nvarchar(402);
    declare @fault nvarchar(200);
    declare @topics table (
        turn  int not null primary key,
        place int not null,
        topic nvarchar(402) collate Latin1_General_100_BIN2 not null
    );

    select top (1) @fault = concat(N'topic is missing (message ', g.position, N')')
    from @given g
    group by g.position
    having max(iif(g.name = N'topic' and g.kind > 0, 1, 0)) = 0
    order by g.position;
    if @fault is not null
        exec rowq.InternalRefuse @fault;

    -- Ask once for each topic, and not for each message.
    insert into @topics (turn, place, topic)
    select row_number() over (order by t.place), t.place, t.topic
    from (
        select g.value as topic, min(g.position) as place
        from @given g
        where g.name = N'topic'
          and g.kind = 1
        group by g.value
    ) t
    option (maxdop 1);
    while 1 = 1
    begin
        set @turn += 1;
        select @topic = t.topic, @place = t.place from @topics t where t.turn = @turn;
        if @@rowcount = 0
            break;
        exec rowq.InternalTopicFault N'topic', @topic, 0, @fault output;
        if @fault is not null
        begin
            set @fault = concat(@fault, N' (message ', @place, N')');
            exec rowq.InternalRefuse @fault;
        end;
    end;
end
go

-- [file internal/cut_ties.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCutTies
    @part_id int,
    @ties rowq.tie_list readonly,
    @may_close bit
as
begin
-- routine   InternalCutTies
-- purpose   Free what messages had, now that they have ended: dedup keys, tokens of groups, and messages that have waited for them.
-- promise   P12 P22 P26
-- locks     dedup rows; as InternalLeaveGroups and InternalFreeSuccessors
    set nocount on;
    declare @awaited_id bigint = 0;
    declare @leaving rowq.message_list;

    delete k
    from @ties j
    inner join rowq.dedup k with (rowlock, forceseek)
        on k.part_id = @part_id
       and k.dedup_key = convert(varbinary(802), j.dedup_key + N'.')
       and k.message_id = j.message_id
    where j.dedup_key is not null
    option (loop join, force order, maxdop 1);

    insert into @leaving (message_id, lane, place, attempt, group_key)
    select j.message_id, 0, 0, 0, convert(varbinary(802), j.group_key + N'.')
    from @ties j
    where j.group_key is not null;
    if @@rowcount > 0
        exec rowq.InternalLeaveGroups @part_id, @leaving, @may_close;

    while 1 = 1
    begin
        select top (1) @awaited_id = j.message_id
        from @ties j
        where j.message_id > @awaited_id
          and j.is_awaited = 1
        order by j.message_id;
        if @@rowcount = 0
            break;
        exec rowq.InternalFreeSuccessors @part_id, @awaited_id, @may_close;
    end;
end
go

-- [file internal/delete_claim.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalDeleteClaim
    @part_id int,
    @claim_id bigint
as
begin
-- routine   InternalDeleteClaim
-- purpose   Remove a claim whose messages all leave it; raise an error if it is gone already.
-- promise   P08
-- locks     the claim row
-- errors    RQ721
-- differs   elsewhere a claim holds its messages in its own row
    set nocount on;
    declare @text nvarchar(2048) = concat(
        N'RQ721 stale_claim: claim ', @claim_id, N' holds nothing any more'
    );

    delete c
    from rowq.claim c with (rowlock, forceseek)
    where c.part_id = @part_id
      and c.claim_id = @claim_id
    option (maxdop 1, keepfixed plan);
    if @@rowcount = 0
        throw 52721, @text, 1;
end
go

-- [file internal/delete_empty_claim.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalDeleteEmptyClaim
    @part_id int,
    @claim_id bigint
as
begin
-- routine   InternalDeleteEmptyClaim
-- purpose   Remove a claim that holds nothing any more.
-- promise   P08
-- locks     the claim row
-- differs   elsewhere a claim holds its messages in its own row
    set nocount on;
    delete c
    from rowq.claim c with (rowlock, forceseek)
    where c.part_id = @part_id
      and c.claim_id = @claim_id
      and not exists (
          select 1
          from rowq.leased l with (forceseek)
          where l.part_id = @part_id
            and l.claim_id = @claim_id
      )
    option (loop join, maxdop 1);
end
go

-- [file internal/delete_queue.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalDeleteQueue
    @part_id int
as
begin
-- routine   InternalDeleteQueue
-- purpose   Delete everything that belongs to a queue, and the queue.
-- promise   P15
-- locks     all rows of the queue
-- differs   no such helper elsewhere: part of drop_queue
    set nocount on;
    -- The name goes first: what a call leaves that is broken off half-way is then out of reach, and
    -- never a queue without some of its messages.
    delete from rowq.queue where part_id = @part_id;
    delete from rowq.ready where part_id = @part_id;
    delete from rowq.delayed where part_id = @part_id;
    delete from rowq.claim where part_id = @part_id;
    delete from rowq.leased where part_id = @part_id;
    delete from rowq.dead with (rowlock) where part_id = @part_id;
    delete from rowq.dedup where part_id = @part_id;
    delete from rowq.grouped where part_id = @part_id;
    delete from rowq.message_group where part_id = @part_id;
    delete from rowq.recheck where part_id = @part_id;
    delete from rowq.blocked where part_id = @part_id;
    delete from rowq.successor where part_id = @part_id;
    delete from rowq.expiry where part_id = @part_id;
    delete from rowq.result where part_id = @part_id;
    delete from rowq.history where part_id = @part_id;
    delete from rowq.started where part_id = @part_id;
    delete from rowq.gate where part_id = @part_id;
    delete from rowq.topic_binding where part_id = @part_id;
    delete from rowq.schedule where part_id = @part_id;
    delete from rowq.finished where part_id = @part_id;
    delete from rowq.message with (rowlock) where part_id = @part_id;
    delete from rowq.archived where part_id = @part_id;
    delete from rowq.lane where part_id = @part_id;
    delete from rowq.part where part_id = @part_id;
end
go

-- [file internal/dequeue.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalDequeue
    @queue_name nvarchar(max),
    @batch_size int,
    @worker_name nvarchar(max),
    @lease_seconds int,
    @part_id int output,
    @claim_id bigint output,
    @lease_until datetime2(6) output,
    @most_bytes bigint = null
as
begin
-- routine   InternalDequeue
-- purpose   Lease ready messages, up to @batch_size or @most_bytes, to one new claim; null when there is none.
-- promise   P02 P03 P05 P06 P07 P13 P18 P28 P29
-- locks     the part, shared; where the queue has limits, its gate, tried for a tenth of a second;
--           ready rows, passing over locked ones; the new claim row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   two routines share it, as a procedure cannot read the result of another
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @queue_key varbinary(402);
    declare @default_seconds int;
    declare @is_paused bit;
    declare @has_recheck bit;
    declare @max_leased int;
    declare @rate_limit int;
    declare @rate_seconds float;
    declare @room int;
    declare @taken int;
    declare @leased_at datetime2(6);
    declare @promoted int;
    declare @solved int;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            set @part_id = null;
            set @claim_id = null;
            set @taken = 0;
            if @batch_size is null or @batch_size not between 1 and 1000
                exec rowq.InternalCheckRange N'batch_size', @batch_size, 1, 1000, @is_required = 1;
            if @lease_seconds not between 1 and 86400
                exec rowq.InternalCheckRange N'lease_seconds', @lease_seconds, 1, 86400;
            if @worker_name is not null
                and len((@worker_name + N'.') collate Latin1_General_100_CI_AS_SC) > 201
                exec rowq.InternalRefuse N'worker_name is longer than 200 characters';

            if @owns_transaction = 1
                begin transaction;
            -- As InternalEnterQueue does it: one statement, and no procedure to call.
            if datalength(@queue_name) <= 400
            begin
                set @queue_key = convert(varbinary(402), @queue_name + N'.');
                select @part_id = q.part_id, @default_seconds = q.lease_seconds,
                       @is_paused = iif(q.paused_at is null, 0, 1), @has_recheck = q.has_recheck,
                       @max_leased = q.max_leased, @rate_limit = q.rate_limit,
                       @rate_seconds = q.rate_seconds
                from rowq.queue q
                inner join rowq.part p with (rowlock, repeatableread, forceseek)
                    on p.part_id = q.part_id
                where q.queue_key = @queue_key
                option (loop join, force order, maxdop 1, keepfixed plan);
            end;
            if @part_id is null
                exec rowq.InternalRefuseQueue @queue_name;
            set @room = iif(@is_paused = 1, 0, @batch_size);
            if @room > 0 and @max_leased + @rate_limit > 0
                exec rowq.InternalAdmit
                    @part_id, @max_leased, @rate_limit output, @rate_seconds, @batch_size,
                    @room output;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            if @room > 0
            begin
                exec rowq.InternalPopReady
                    @part_id, @room, @owns_transaction, @claim_id output, @taken output;
                if @taken = 0
                begin
                    -- Nothing is ready, so promote what is due by now, and look again at what was
                    -- left: this need not wait for the next maintain.
                    exec rowq.InternalPromote
                        @part_id, @room, @owns_transaction, @promoted output;
                    set @solved = 0;
                    if @promoted = 0 and @has_recheck = 1 and @owns_transaction = 1
                        exec rowq.InternalRecheck
                            @part_id, 10, @owns_transaction, @solved output;
                    if @promoted > 0 or @solved > 0
                        exec rowq.InternalPopReady
                            @part_id, @room, @owns_transaction, @claim_id output, @taken output;
                end;
            end;

            if @taken > 0
            begin
                set @leased_at = sysutcdatetime();
                set @lease_until = dateadd(
                    second, coalesce(@lease_seconds, @default_seconds), @leased_at
                );
                insert into rowq.claim with (rowlock)
                    (part_id, claim_id, leased_at, lease_until, worker_name)
                values (@part_id, @claim_id, @leased_at, @lease_until, @worker_name);
                if @rate_limit > 0
                    insert into rowq.started with (rowlock)
                        (part_id, started_at, claim_id, messages)
                    values (@part_id, sysutcdatetime(), @claim_id, @taken);
                if @taken > 1 and @most_bytes is not null
                    exec rowq.InternalTrimClaim @part_id, @claim_id, @most_bytes;
            end;
            else
                set @claim_id = null;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again. So does one that came to a group at the same moment as a producer.
            set @tries_left = iif(
                @owns_transaction = 1
                    and (
                        error_number() = 1205
                        or error_number() = 1222
                            and error_procedure() like N'%InternalTryEnterGroup'
                    ),
                @tries_left - 1, 0
            );
            -- Without row versions a count may have to wait for a session that is ending a lease.
            -- When that takes too long there is no room, and nothing has been written yet.
            if @tries_left = 0
                and not (error_number() = 1222 and error_procedure() like N'%InternalRoom')
                throw;
        end catch;
    end;
end
go

-- [file internal/drop_days.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalDropDays
    @partitions_dropped int output
with execute as owner
as
begin
-- routine   InternalDropDays
-- purpose   Empty the partitions of the archive that are too old for every queue, and take their bounds away.
-- promise   P19
-- locks     the archive, for a moment, waiting for a second at most
-- commits   never; call it outside transactions
-- differs   PostgreSQL drops them in the transaction of the caller
    set nocount on;
    set xact_abort off;
    set lock_timeout 1000;
    declare @keep_from datetime2(6);
    declare @first datetime2(6);
    declare @second datetime2(6);
    set @partitions_dropped = 0;

    select @keep_from = cast(dateadd(day, -max(q.archive_days), sysutcdatetime()) as date)
    from rowq.queue q;

    while 1 = 1
    begin
        set @first = null;
        set @second = null;
        select @first = cast(v.value as datetime2(6))
        from sys.partition_functions f
        inner join sys.partition_range_values v on v.function_id = f.function_id
        where f.name = N'rowq_day'
          and v.boundary_id = 1;
        select @second = cast(v.value as datetime2(6))
        from sys.partition_functions f
        inner join sys.partition_range_values v on v.function_id = f.function_id
        where f.name = N'rowq_day'
          and v.boundary_id = 2;
        if @second is null or @second > @keep_from
            break;

        -- Partitions 1 and 2, on both sides of the first bound, are too old. They are emptied
        -- first, so that merging them moves no row. The statements fail where another session reads
        -- the archive: leave it to the next call.
        begin try
            truncate table rowq.archived with (partitions (1 to 2));
            alter partition function rowq_day() merge range (@first);
        end try
        begin catch
            break;
        end catch;
        -- A gap between two opened days is a partition too, but not a day, so it is not counted.
        if @second = dateadd(day, 1, @first)
            set @partitions_dropped += 1;
    end;
end
go

-- [file internal/end_cancelled.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalEndCancelled
    @part_id int,
    @messages rowq.message_list readonly,
    @may_close bit
as
begin
-- routine   InternalEndCancelled
-- purpose   End messages of a claim that were cancelled while a worker had them.
-- promise   P34
-- locks     as InternalFinish
    set nocount on;
    declare @archive_days int;
    if not exists (select 1 from @messages)
        return;

    select @archive_days = q.archive_days
    from rowq.queue q
    where q.part_id = @part_id;
    exec rowq.InternalFinish @part_id, @archive_days, @messages, N'cancelled', @may_close;
end
go

-- [file internal/enqueue_batch.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalEnqueueBatch
    @queue_name nvarchar(max),
    @messages nvarchar(max),
    @is_published bit = 0
as
begin
-- routine   InternalEnqueueBatch
-- purpose   Add the messages of a JSON array to a queue, or each to those that are bound to its topic, all of them or, on an error, none; returns the rows.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P26 P27 P35 P36
-- locks     new rows; the part, shared; with dedup and group keys, waits as enqueue does, in the
--           order of the keys; as InternalStoreBatch; as InternalBoundQueues where published, and
--           then queue by queue in the order of their names
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   no such helper elsewhere: as InternalNextMessageId, it is compiled only after the
--           routine has set rowcount to 0
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @max_body_length int = 33554432;
    declare @uncounted_length int = 0;
    declare @group_limit int;
    declare @now datetime2(6);
    declare @is_array bit = 0;
    declare @has_waiting bit;
    declare @first_id bigint;
    declare @given rowq.given_list;
    declare @parsed rowq.parsed_list;
    declare @new rowq.new_list;
    declare @queues nvarchar(max);
    declare @turn int;
    -- turn is the place of a queue in @queues; of a message that is published to it there is a row.
    declare @bound table (
        turn     int not null,
        position int not null,
        primary key (turn, position)
    );
    declare @stored table (
        turn       int not null,
        position   int not null,
        message_id bigint not null,
        is_new     bit not null,
        primary key (turn, position)
    );

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            -- Where no queue is given, each has a limit of its own, for which all bodies are
            -- counted.
            if @is_published = 0
            begin
                exec rowq.InternalRequireQueue
                    @queue_name, @part_id output, @max_body_length = @max_body_length output,
                    @group_limit = @group_limit output;
                set @uncounted_length = @max_body_length;
            end;
            -- openjson reports an array as type 4. It raises an error for text that is not JSON or
            -- is nested more than 128 deep, so isjson looks first: at the array alone, and at the
            -- array inside another, as it is read here.
            if isjson(@messages) = 1 and isjson(concat(N'[', @messages, N']')) = 1
                select @is_array = iif(max(j.[type]) = 4, 1, 0)
                from openjson(concat(N'[', @messages, N']')) j;
            if @is_array = 1
                select @is_array = iif(count(*) > 10000, 0, 1)
                from openjson(@messages) j;
            if @is_array = 0
                exec rowq.InternalRefuse N'messages must be a JSON array of at most 10000 objects';

            -- @given takes the short values, and of the long ones only what the checks need: these
            -- stay in the JSON.
            insert into @given (position, name, kind, value, size, is_base64, moment)
            select cast(e.[key] as int) + 1, left(p.[key], 60), coalesce(p.[type], e.[type]),
                   iif(
                       p.[key] in (N'body', N'body_base64', N'headers'), null,
                       left(p.value collate Latin1_General_100_BIN2, 402)
                   ),
                   case
                       when p.[key] in (N'message_type', N'dedup_key', N'group_key')
                           or p.[key] = N'body'
                               and datalength(p.value) / 2 > @uncounted_length
                           or p.[key] = N'headers' and datalength(p.value) / 2 > 65536
                           then len((p.value + N'.') collate Latin1_General_100_CI_AS_SC) - 1
                       when p.[key] in (N'body', N'headers')
                           then datalength(p.value) / 2
                       -- Four letters of base64 are three bytes; each = at the end stands for a
                       -- byte that is not there.
                       when p.[key] = N'body_base64'
                           then datalength(p.value) / 8 * 3 - datalength(right(p.value, 2)) / 2
                               + len(replace(right(p.value, 2), N'=', N''))
                   end,
                   case
                       when p.[key] <> N'body_base64' then 0
                       when p.value collate Latin1_General_100_BIN2 like N'%[^A-Za-z0-9+/=]%' then 0
                       when p.value like N'%=[^=]%' or p.value like N'%===' then 0
                       else iif(len(p.value) % 4 = 0, 1, 0)
                   end,
                   m.moment
            from openjson(@messages) e
            outer apply openjson(iif(e.[type] = 5, e.value, N'{}')) p
            outer apply (
                -- A moment looks like 2030-12-31T23:59:59.123456+01:00. The zone may also be Z or
                -- +0100, or missing, which means UTC.
                select dateadd(minute, -t.minutes, t.moment) as moment
                from (
                    select left(p.value, 60) as value,
                           case
                               when right(p.value, 1) = N'Z' then 1
                               when substring(p.value, len(p.value) - 4, 1) in (N'-', N'+') then 5
                               when substring(p.value, len(p.value) - 5, 1) in (N'-', N'+') then 6
                               else 0
                           end as length
                    where p.[key] = N'run_at'
                      and p.[type] = 1
                      and len(p.value) < 60
                      and p.value like
                          N'[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9][T ][0-9][0-9]:[0-9][0-9]%'
                ) z
                cross apply (
                    select try_cast(
                               stuff(left(z.value, len(z.value) - z.length), 11, 1, N' ')
                               as datetime2(6)
                           ) as moment,
                           iif(left(right(z.value, z.length), 1) = N'-', -1, 1)
                           * iif(
                               z.length < 5, 0,
                               60 * try_cast(substring(right(z.value, z.length), 2, 2) as int)
                               + try_cast(right(z.value, 2) as int)
                           ) as minutes
                ) t
                where t.minutes between -840 and 840
                  and t.moment > '19000101'
            ) m;
            exec rowq.InternalCheckGiven @given, @max_body_length, @is_published;
            if @is_published = 1
                exec rowq.InternalCheckTopics @given;
            if exists (select 1 from @given g where g.name = N'headers' and g.kind = 5)
                exec rowq.InternalCheckHeaders @messages, @is_batch = 1;
            set @has_waiting = 0;
            select @has_waiting = 1
            from @given g
            where g.name in (N'predecessor_ids', N'predecessor_positions')
              and g.kind = 4;
            if @has_waiting = 1
            begin
                exec rowq.InternalNextMessageId @first_id output;
                exec rowq.InternalRefusePredecessors @messages, @first_id;
            end;

            insert into @parsed (
                position, lane, delay_seconds, run_at, message_type, dedup_key, key_place,
                max_attempts, group_key, on_dead, expire_seconds
            )
            -- A value that is not given becomes one below all valid ones and not null: for a null
            -- in an aggregate the engine sends a warning, which some drivers take for the result.
            -- Texts get a dot at the end, so that an empty text differs from a missing one and
            -- trailing blanks tell keys apart.
            select h.position, iif(h.priority < 0, 5, h.priority) * 2 + 1,
                   nullif(h.delay_seconds, -1), nullif(h.run_at, '19000101'),
                   left(h.message_type, len(nullif(h.message_type, N'')) - 1),
                   left(h.dedup_key, len(nullif(h.dedup_key, N'')) - 1),
                   row_number() over (
                       partition by convert(varbinary(802), h.dedup_key)
                       order by h.position
                   ),
                   nullif(h.max_attempts, 0),
                   left(h.group_key, len(nullif(h.group_key, N'')) - 1), nullif(h.on_dead, N''),
                   nullif(h.expire_seconds, 0)
            from (
                select g.position,
                       max(iif(g.name = N'priority', coalesce(try_cast(g.value as int), -1), -1))
                           as priority,
                       max(
                           iif(
                               g.name = N'delay_seconds',
                               coalesce(try_cast(g.value as float), -1), -1
                           )
                       ) as delay_seconds,
                       max(coalesce(g.moment, '19000101')) as run_at,
                       max(iif(g.name = N'message_type' and g.kind > 0, g.value + N'.', N''))
                           as message_type,
                       max(iif(g.name = N'dedup_key' and g.kind > 0, g.value + N'.', N''))
                           as dedup_key,
                       max(iif(g.name = N'max_attempts', coalesce(try_cast(g.value as int), 0), 0))
                           as max_attempts,
                       max(iif(g.name = N'group_key' and g.kind > 0, g.value + N'.', N''))
                           as group_key,
                       max(iif(g.name = N'on_predecessor_dead' and g.kind > 0, g.value, N''))
                           as on_dead,
                       max(
                           iif(
                               g.name = N'expire_seconds',
                               coalesce(try_cast(g.value as float), 0), 0
                           )
                       ) as expire_seconds
                from @given g
                group by g.position
            ) h;

            if @owns_transaction = 1
                begin transaction;
            if @is_published = 0
                exec rowq.InternalLockPartShared @part_id, @queue_name;
            else
            begin
                exec rowq.InternalBoundQueues @messages, @queues output;
                insert into @bound (turn, position)
                select cast(q.[key] as int), cast(p.value as int)
                from openjson(@queues) q
                cross apply openjson(q.value, N'$.places') p
                option (maxdop 1);
                exec rowq.InternalCheckBodies @given, @queues;
            end;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            if @is_published = 1
                update p
                set message_type = g.value
                from @parsed p
                inner join @given g
                    on g.position = p.position
                   and g.name = N'topic'
                where p.message_type is null
                option (hash join, maxdop 1);
            set @turn = 0;
            while 1 = 1
            begin
                -- A batch of enqueue_batch has one turn, for its queue.
                if @is_published = 1
                begin
                    select @part_id = cast(json_value(q.value, N'$.part_id') as int),
                           @group_limit = cast(json_value(q.value, N'$.group_limit') as int)
                    from openjson(@queues) q
                    where q.[key] = cast(@turn as nvarchar(10));
                    if @@rowcount = 0
                        break;
                end;
                set @now = sysutcdatetime();
                insert into @new (
                    position, message_id, key_bytes, key_place, lane, due_at, group_key, on_dead
                )
                -- The ids follow the order of the batch, because they order messages that are due
                -- at the same moment.
                select p.position, next value for rowq.message_seq over (order by p.position),
                       iif(p.dedup_key is null, null, convert(varbinary(802), p.dedup_key + N'.')),
                       p.key_place, p.lane, iif(d.due_at > @now, d.due_at, null),
                       convert(varbinary(802), p.group_key + N'.'), p.on_dead
                from @parsed p
                cross apply (
                    select coalesce(
                        p.run_at,
                        dateadd(
                            microsecond,
                            cast(round((p.delay_seconds - floor(p.delay_seconds)) * 1e6, 0) as int),
                            dateadd(second, cast(floor(p.delay_seconds) as int), @now)
                        )
                    )
                ) d (due_at)
                where @is_published = 0
                   or exists (
                       select 1
                       from @bound b
                       where b.turn = @turn
                         and b.position = p.position
                   );
                -- The place of a key counts among the messages of this queue.
                if @is_published = 1
                    update n
                    set key_place = f.place
                    from @new n
                    inner join (
                        select k.position,
                               row_number() over (
                                   partition by k.key_bytes order by k.position
                               ) as place
                        from @new k
                        where k.key_bytes is not null
                    ) f on f.position = n.position
                    option (hash join, maxdop 1);

                -- Insert all keys at once, in key order, so that two batches with the same keys
                -- cannot wait for each other. A key whose owner was finished in between is free
                -- again: try once more.
                while exists (
                    select 1 from @new n where n.key_bytes is not null and n.holder is null
                )
                begin
                    insert into rowq.dedup with (rowlock) (part_id, dedup_key, message_id)
                    select @part_id, n.key_bytes, n.message_id
                    from @new n
                    where n.key_bytes is not null
                      and n.key_place = 1
                      and n.holder is null
                      and not exists (
                          select 1
                          from rowq.dedup d with (rowlock, readcommittedlock, forceseek)
                          where d.part_id = @part_id
                            and d.dedup_key = n.key_bytes
                      )
                    order by n.key_bytes
                    option (loop join, maxdop 1);
                    update n
                    set holder = d.message_id
                    from @new n
                    inner join rowq.dedup d with (rowlock, readcommittedlock, forceseek)
                        on d.part_id = @part_id
                       and d.dedup_key = n.key_bytes
                    where n.holder is null
                    option (loop join, force order, maxdop 1);
                end;
                update @new set holder = message_id where key_bytes is null;

                exec rowq.InternalStoreBatch
                    @part_id, @group_limit, @messages, @has_waiting, @now, @parsed, @new;
                if @is_published = 0
                    break;
                insert into @stored (turn, position, message_id, is_new)
                select @turn, n.position, n.holder, iif(n.holder = n.message_id, 1, 0)
                from @new n;
                delete from @new;
                set @turn += 1;
            end;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
            delete from @given;
            delete from @parsed;
            delete from @new;
            delete from @bound;
            delete from @stored;
        end catch;
    end;

    if @is_published = 0
        select n.position, n.holder as message_id,
               iif(n.holder = n.message_id, N'enqueued', N'duplicate') as outcome
        from @new n
        order by n.position;
    else
        select s.position,
               cast(json_value(q.value, N'$.queue_name') as nvarchar(200)) as queue_name,
               s.message_id, iif(s.is_new = 1, N'enqueued', N'duplicate') as outcome
        from openjson(@queues) q
        inner join @stored s on s.turn = cast(q.[key] as int)
        order by s.turn, s.position
        option (loop join, force order, maxdop 1);
end
go

-- [file internal/enter_group.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalEnterGroup
    @part_id int,
    @group_key varbinary(802),
    @group_limit int,
    @has_token bit output
as
begin
-- routine   InternalEnterGroup
-- purpose   Take a token of a group: @has_token is 0 where the message has to wait behind others.
-- promise   P21 P22 P24
-- locks     a new message_group row, or the group's, shared; waits for who opens or closes it
    set nocount on;
    declare @newest_limit int;
    declare @tokens int;
    declare @token_no int;
    declare @is_full bit;

    while 1 = 1
    begin
        -- This look waits for a session that is opening or closing the group. A number that differs
        -- from its place in the order has a gap before it.
        select @tokens = count(*), @token_no = min(iif(t.token_no = t.place, 32767, t.place))
        from (
            select x.token_no, row_number() over (order by x.token_no) as place
            from rowq.message_group x with (rowlock, readcommittedlock, forceseek)
            where x.part_id = @part_id
              and x.group_key = @group_key
        ) t
        option (maxdop 1, keepfixed plan);

        set @is_full = iif(@tokens < @group_limit, 0, 1);
        if @is_full = 0
        begin
            -- Take the first free number. The count keeps a limit that was lowered. If another
            -- session takes the number meanwhile, this inserts no row (ignore_dup_key): look again.
            set @token_no = iif(@token_no < 32767, @token_no, @tokens + 1);
            insert into rowq.message_group with (rowlock) (part_id, group_key, token_no)
            values (@part_id, @group_key, @token_no);
            set @has_token = @@rowcount;
            -- Any limit leaves room for one.
            if @has_token = 1 and @group_limit = 1
                break;
        end;
        else
        begin
            -- Hold the tokens shared to the end of the transaction (repeatableread): whoever would
            -- give the last one back knows by this that a message is coming. If one was given back
            -- before this had it, look again.
            select @tokens = count(*)
            from rowq.message_group x with (rowlock, repeatableread, forceseek)
            where x.part_id = @part_id
              and x.group_key = @group_key
            option (maxdop 1, keepfixed plan);
            set @has_token = 0;
        end;

        -- Each of these may have waited, and an AlterQueue that has come meanwhile does not see
        -- this message. So what counts is the limit that is read after them.
        select @newest_limit = q.group_limit from rowq.queue q where q.part_id = @part_id;
        if @has_token = 1 and @newest_limit >= @group_limit
            or @is_full = 1 and @tokens >= @newest_limit
            break;
        if @has_token = 1
            delete from rowq.message_group with (rowlock)
            where part_id = @part_id
              and group_key = @group_key
              and token_no = @token_no;
        set @group_limit = @newest_limit;
    end;
end
go

-- [file internal/enter_queue.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalEnterQueue
    @queue_name nvarchar(max),
    @part_id int output,
    @lease_seconds int = null output,
    @max_attempts int = null output,
    @archive_days int = null output,
    @is_paused bit = null output,
    @max_body_length int = null output,
    @group_limit int = null output,
    @result_seconds float = null output,
    @history_days int = null output
as
begin
-- routine   InternalEnterQueue
-- purpose   Return the part and the settings of a queue, and keep it from being dropped; raise an error if it does not exist.
-- promise   P01 P02 P15
-- locks     the row of the part, shared, to the end of the transaction; waits for a drop
-- errors    RQ701 RQ711
-- differs   on PostgreSQL the first insert waits for a drop
    set nocount on;
    declare @queue_key varbinary(402);
    set @part_id = null;

    -- A longer text is no name of a queue, but the conversion below would cut it off, and it could
    -- look like one.
    if datalength(@queue_name) <= 400
    begin
        -- The row of the part stays locked to the end of the transaction (repeatableread).
        set @queue_key = convert(varbinary(402), @queue_name + N'.');
        select @part_id = q.part_id, @lease_seconds = q.lease_seconds,
               @max_attempts = q.max_attempts, @archive_days = q.archive_days,
               @is_paused = iif(q.paused_at is null, 0, 1), @max_body_length = q.max_body_length,
               @group_limit = q.group_limit, @result_seconds = q.result_seconds,
               @history_days = q.history_days
        from rowq.queue q
        inner join rowq.part p with (rowlock, repeatableread, forceseek) on p.part_id = q.part_id
        where q.queue_key = @queue_key
        option (loop join, force order, maxdop 1, keepfixed plan);
    end;
    if @part_id is null
        exec rowq.InternalRefuseQueue @queue_name;
end
go

-- [file internal/expire.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalExpire
    @part_id int,
    @archive_days int,
    @limit int,
    @expired int output
as
begin
-- routine   InternalExpire
-- purpose   Withdraw messages whose time has come, until @limit is passed; return how many there were. Call it in a transaction of rowq's own.
-- promise   P13 P36
-- locks     as InternalPopExpired; expiry rows, passing over locked ones
    set nocount on;
    -- In milliseconds, that of InternalRescanFloors.
    declare @long_walk int = 20;
    declare @step_size int = iif(@limit < 1000, @limit, 1000);
    declare @most_seen int = 10 * @limit;
    declare @started datetime2(6) = sysutcdatetime();
    declare @now datetime2(6) = @started;
    declare @floor bigint;
    declare @since datetime2(6);
    declare @after bigint = 0;
    declare @count int;
    declare @seen int = 0;
    declare @popped_ids nvarchar(max);
    declare @unplaced_ids nvarchar(max);
    declare @notes table (
        expires_at datetime2(6) not null,
        expiry_id  bigint not null,
        message_id bigint not null,
        lane       smallint null,
        seq        bigint null,
        primary key (expires_at, expiry_id)
    );
    declare @done table (message_id bigint not null primary key);
    declare @kept table (
        expires_at datetime2(6) not null,
        expiry_id  bigint not null,
        primary key (expires_at, expiry_id)
    );
    declare @due rowq.message_list;
    declare @rest rowq.message_list;
    set @expired = 0;

    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -8;
    exec rowq.InternalFromMicroseconds @floor, @since output;
    while @seen < @most_seen and @expired < @limit
    begin
        insert into @notes (expires_at, expiry_id, message_id, lane, seq)
        select top (@step_size) e.expires_at, e.expiry_id, e.message_id, e.lane, e.seq
        from rowq.expiry e with (rowlock, readpast, readcommittedlock, forceseek)
        where e.part_id = @part_id
          and e.expires_at >= @since
          and e.expires_at <= @now
          and (e.expires_at > @since or e.expiry_id > @after)
        order by e.expires_at, e.expiry_id
        option (maxdop 1, keepfixed plan);
        set @count = @@rowcount;
        if @count = 0
            break;
        set @seen += @count;

        -- Of several notes of a message the newest says where it is. No lane is -1.
        insert into @due (message_id, lane, place, attempt)
        select h.message_id, coalesce(h.lane, -1), coalesce(h.seq, 0), 0
        from (
            select n.message_id, n.lane, n.seq,
                   row_number() over (partition by n.message_id order by n.expiry_id desc) as turn
            from @notes n
        ) h
        where h.turn = 1;
        exec rowq.InternalPopExpired @part_id, @archive_days, @due, @popped_ids output;
        insert into @done (message_id)
        select cast(j.value as bigint) from openjson(@popped_ids) j;
        set @expired += @@rowcount;

        -- A message that is in no place has ended, is dead, or is held by a claim, and who gives it
        -- back adds a note. One that another session holds now is looked for again.
        insert into @rest (message_id, lane, place, attempt)
        select d.message_id, d.lane, d.place, d.attempt
        from @due d
        where not exists (select 1 from @done o where o.message_id = d.message_id);
        if @@rowcount > 0
        begin
            exec rowq.InternalUnplacedOf @part_id, @rest, @unplaced_ids output;
            insert into @done (message_id)
            select cast(j.value as bigint) from openjson(@unplaced_ids) j;
        end;
        delete e
        from @notes n
        inner join @done o on o.message_id = n.message_id
        inner join rowq.expiry e with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            on e.part_id = @part_id
           and e.expires_at = n.expires_at
           and e.expiry_id = n.expiry_id
        option (loop join, force order, maxdop 1);
        insert into @kept (expires_at, expiry_id)
        select n.expires_at, n.expiry_id
        from @notes n
        where not exists (select 1 from @done o where o.message_id = n.message_id);

        select top (1) @since = n.expires_at, @after = n.expiry_id
        from @notes n
        order by n.expires_at desc, n.expiry_id desc;
        delete from @notes;
        delete from @due;
        delete from @rest;
        delete from @done;
        if @count < @step_size
            break;
        -- Take the time anew, because what the end of a message has let go on has a note of a later
        -- moment.
        set @now = sysutcdatetime();
    end;

    -- Put what is kept behind the others that are due, once it could stand in front of them: else a
    -- session that is idle in its transaction must not make every look write.
    if (
            @seen >= @most_seen
            or datediff_big(millisecond, @started, sysutcdatetime()) > @long_walk
        )
        and exists (select 1 from @kept)
        update e
        set expires_at = @now
        from @kept k
        inner join rowq.expiry e with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            on e.part_id = @part_id
           and e.expires_at = k.expires_at
           and e.expiry_id = k.expiry_id
        option (loop join, force order, maxdop 1);
end
go

-- [file internal/finish.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalFinish
    @part_id int,
    @archive_days int,
    @messages rowq.message_list readonly,
    @state nvarchar(20),
    @may_close bit
as
begin
-- routine   InternalFinish
-- purpose   Remove finished messages, or note them for the archive.
-- promise   P04 P12 P22 P26 P32
-- locks     message rows; as InternalCutTies; result rows
    set nocount on;
    declare @ties rowq.tie_list;

    if @archive_days > 0
    begin
        insert into rowq.finished with (rowlock)
            (part_id, finished_at, message_id, lane, attempt, state)
        select @part_id, sysutcdatetime(), j.message_id, j.lane, j.attempt, @state
        from @messages j
        option (maxdop 1);
        -- What waits for one of them and is not committed yet is left to InternalArchive.
        insert into @ties (message_id, dedup_key, group_key, is_awaited)
        select m.message_id, m.dedup_key, iif(j.is_tokenless = 1, null, m.group_key),
               iif(s.predecessor_id is null, null, 1)
        from @messages j
        inner join rowq.message m with (forceseek)
            on m.part_id = @part_id
           and m.message_id = j.message_id
        outer apply (
            select top (1) x.predecessor_id
            from rowq.successor x with (rowlock, readpast, readcommittedlock, forceseek)
            where x.part_id = @part_id
              and x.predecessor_id = m.message_id
        ) s
        where m.dedup_key is not null
           or m.group_key is not null
           or s.predecessor_id is not null
        option (loop join, force order, maxdop 1);
        if @@rowcount > 0
            exec rowq.InternalCutTies @part_id, @ties, @may_close;
    end;
    else
    begin
        -- The row is locked exclusively before the look into successor, in this order: that waits
        -- for a producer that has just named the message, and then sees what it has added.
        delete m
        output deleted.message_id, deleted.dedup_key,
               iif(j.is_tokenless = 1, null, deleted.group_key),
               iif(s.predecessor_id is null, null, 1)
        into @ties (message_id, dedup_key, group_key, is_awaited)
        from @messages j
        inner join rowq.message m with (rowlock, xlock, forceseek)
            on m.part_id = @part_id
           and m.message_id = j.message_id
        outer apply (
            select top (1) x.predecessor_id
            from rowq.successor x with (rowlock, readcommittedlock, forceseek)
            where x.part_id = @part_id
              and x.predecessor_id = m.message_id
        ) s
        option (loop join, force order, maxdop 1);

        -- Most messages have no tie: then the rest is not worth its price.
        if exists (
            select 1
            from @ties t
            where t.dedup_key is not null
               or t.group_key is not null
               or t.is_awaited = 1
        )
            exec rowq.InternalCutTies @part_id, @ties, @may_close;
    end;

    -- What was completed has results of its own, which Complete keeps.
    if @state <> N'completed'
        exec rowq.InternalPushResult @part_id, @messages, @state;
end
go

-- [file internal/first_key.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalFirstKey
    @part_id int,
    @lane smallint,
    @first bigint output
as
begin
-- routine   InternalFirstKey
-- purpose   Return the first live key of a lane from its very start on; null where there is none.
-- promise   P13 P14
-- locks     rows, shared while they are read, passing over locked ones
    set nocount on;
    set @first = null;

    if @lane = -1
        select top (1) @first = c.claim_id
        from rowq.claim c with (rowlock, readpast, readcommittedlock, forceseek)
        where c.part_id = @part_id
        order by c.claim_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -2
        select top (1) @first = datediff_big(microsecond, '19700101', d.due_at)
        from rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
        where d.part_id = @part_id
        order by d.due_at, d.message_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -10
        select top (1) @first = datediff_big(microsecond, '19700101', h.ended_at)
        from rowq.history h
            with (index (history_pk), rowlock, readpast, readcommittedlock, forceseek)
        where h.part_id = @part_id
        order by h.ended_at, h.message_id, h.claim_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -9
        select top (1) @first = datediff_big(microsecond, '19700101', r.finished_at)
        from rowq.result r
            with (index (result_finished_ix), rowlock, readpast, readcommittedlock, forceseek)
        where r.part_id = @part_id
        order by r.finished_at, r.message_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -8
        select top (1) @first = datediff_big(microsecond, '19700101', e.expires_at)
        from rowq.expiry e with (rowlock, readpast, readcommittedlock, forceseek)
        where e.part_id = @part_id
        order by e.expires_at, e.expiry_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -7
        select top (1) @first = datediff_big(microsecond, '19700101', s.started_at)
        from rowq.started s with (rowlock, readpast, readcommittedlock, forceseek)
        where s.part_id = @part_id
        order by s.started_at, s.claim_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -6
        select top (1) @first = datediff_big(microsecond, '19700101', r.due_at)
        from rowq.recheck r with (rowlock, readpast, readcommittedlock, forceseek)
        where r.part_id = @part_id
        order by r.due_at, r.recheck_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -3
        select top (1) @first = datediff_big(microsecond, '19700101', f.finished_at)
        from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
        where f.part_id = @part_id
        order by f.finished_at, f.message_id
        option (maxdop 1, keepfixed plan);
    else
        select top (1) @first = r.seq
        from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
        where r.part_id = @part_id
          and r.lane = @lane
        order by r.seq, r.message_id
        option (maxdop 1, keepfixed plan);
end
go

-- [file internal/follow_death.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalFollowDeath
    @part_id int,
    @dead_id bigint,
    @may_join bit,
    @failed nvarchar(max) output
as
begin
-- routine   InternalFollowDeath
-- purpose   Let the messages go on that wait for a dead one and do not mind; those that fail with it are added to @failed, as InternalUnblock returns them.
-- promise   P27
-- locks     successor rows; as InternalUnblock; new recheck rows
-- differs   part of internal_follow_deaths on PostgreSQL
    set nocount on;
    declare @most int = 1000;
    declare @count int;
    declare @ids nvarchar(max);
    declare @again nvarchar(max);
    declare @some nvarchar(max);
    declare @asking table (
        message_id bigint not null primary key
    );

    with head as (
        select top (@most) s.part_id, s.predecessor_id, s.message_id
        from rowq.successor s with (rowlock, updlock, readpast, readcommittedlock, forceseek)
        where s.part_id = @part_id
          and s.predecessor_id = @dead_id
          and s.on_dead in (N'continue', N'fail')
        order by s.message_id
    )
    delete from head
    output deleted.message_id
    into @asking (message_id)
    option (maxdop 1, keepfixed plan);
    set @count = @@rowcount;
    if @count = 0
        return;
    if @count = @most
        insert into rowq.recheck with (rowlock)
            (part_id, due_at, recheck_id, predecessor_id, is_hint)
        values (@part_id, sysutcdatetime(), next value for rowq.message_seq, @dead_id, 1);

    select @ids = N'[' + string_agg(cast(a.message_id as nvarchar(max)), N',') + N']'
    from @asking a;
    exec rowq.InternalUnblock @part_id, @ids, null, @may_join, @again output, @some output;
    if @again is not null
        insert into rowq.recheck with (rowlock) (part_id, due_at, recheck_id, message_id)
        select @part_id, sysutcdatetime(), next value for rowq.message_seq, cast(j.value as bigint)
        from openjson(@again) j
        option (maxdop 1);
    if @some is not null
        set @failed = iif(
            @failed is null, @some,
            concat(left(@failed, len(@failed) - 1), N',', substring(@some, 2, len(@some)))
        );
end
go

-- [file internal/follow_deaths.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalFollowDeaths
    @part_id int,
    @message_ids nvarchar(max),
    @failed nvarchar(max),
    @may_join bit
as
begin
-- routine   InternalFollowDeaths
-- purpose   Let what waits for dead messages do as it asked. @failed are messages that fail, as InternalUnblock returns them, and are made dead first.
-- promise   P10 P12 P27 P32
-- locks     message rows, tried only; new dead and result rows; dedup rows; as InternalFollowDeath;
--           new recheck rows
    set nocount on;
    declare @most int = 1000;
    declare @count int = 0;
    declare @next nvarchar(max) = @failed;
    declare @dead_id bigint;
    declare @dead table (message_id bigint not null primary key);
    declare @lost table (
        message_id bigint not null primary key,
        lane       smallint not null,
        dead_id    bigint not null
    );
    declare @held table (
        message_id bigint not null primary key,
        is_awaited bit not null
    );
    declare @ties rowq.tie_list;
    declare @ended rowq.message_list;

    insert into @dead (message_id)
    select distinct cast(j.value as bigint) from openjson(@message_ids) j;
    while 1 = 1
    begin
        if @next is not null
        begin
            delete from @lost;
            insert into @lost (message_id, lane, dead_id)
            select j.message_id, j.lane, j.dead_id
            from openjson(@next) with (
                message_id bigint '$[0]', lane smallint '$[1]', dead_id bigint '$[2]'
            ) j;
            insert into rowq.dead with (rowlock) (part_id, message_id, lane, attempt, died_at)
            select @part_id, f.message_id, f.lane, 0, sysutcdatetime()
            from @lost f
            option (maxdop 1);
            update m
            set last_error = concat(N'predecessor ', f.dead_id, N' is dead')
            from @lost f
            inner join rowq.message m with (rowlock, forceseek)
                on m.part_id = @part_id
               and m.message_id = f.message_id
            option (loop join, force order, maxdop 1);
            delete from @ended;
            insert into @ended (message_id, lane, place, attempt)
            select f.message_id, f.lane, 0, 0 from @lost f;
            exec rowq.InternalPushResult @part_id, @ended, N'dead';
            delete from @ties;
            insert into @ties (message_id, dedup_key)
            select m.message_id, m.dedup_key
            from @lost f
            inner join rowq.message m with (forceseek)
                on m.part_id = @part_id
               and m.message_id = f.message_id
               and m.dedup_key is not null
            option (loop join, force order, maxdop 1);
            if @@rowcount > 0
                exec rowq.InternalCutTies @part_id, @ties, @may_join;
            delete from @dead;
            insert into @dead (message_id)
            select f.message_id from @lost f;
            set @count += @@rowcount;
        end;

        -- Where a row is locked, a producer is adding a message that waits: look again when it is
        -- there.
        delete from @held;
        insert into @held (message_id, is_awaited)
        select m.message_id, iif(s.predecessor_id is null, 0, 1)
        from @dead j
        inner join rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            on m.part_id = @part_id
           and m.message_id = j.message_id
        outer apply (
            select top (1) x.predecessor_id
            from rowq.successor x with (rowlock, readcommittedlock, forceseek)
            where x.part_id = @part_id
              and x.predecessor_id = m.message_id
        ) s
        option (loop join, force order, maxdop 1);
        insert into rowq.recheck with (rowlock)
            (part_id, due_at, recheck_id, predecessor_id, is_hint)
        select @part_id, sysutcdatetime(), next value for rowq.message_seq, j.message_id, 1
        from @dead j
        where not exists (select 1 from @held h where h.message_id = j.message_id)
        option (loop join, maxdop 1);

        -- A long tree dies in steps, so that no transaction grows without end.
        if @count > @most
        begin
            insert into rowq.recheck with (rowlock)
                (part_id, due_at, recheck_id, predecessor_id, is_hint)
            select @part_id, sysutcdatetime(), next value for rowq.message_seq, h.message_id, 1
            from @held h
            where h.is_awaited = 1
            option (maxdop 1);
            return;
        end;

        set @next = null;
        set @dead_id = 0;
        while 1 = 1
        begin
            select top (1) @dead_id = h.message_id
            from @held h
            where h.message_id > @dead_id
              and h.is_awaited = 1
            order by h.message_id;
            if @@rowcount = 0
                break;
            exec rowq.InternalFollowDeath @part_id, @dead_id, @may_join, @next output;
        end;
        if @next is null
            return;
    end;
end
go

-- [file internal/free_successors.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalFreeSuccessors
    @part_id int,
    @predecessor_id bigint,
    @may_join bit
as
begin
-- routine   InternalFreeSuccessors
-- purpose   Let the messages go on that have waited for this one, which has ended; leave to maintain those that cannot go on now.
-- promise   P26
-- locks     successor rows; as InternalLetGo; new recheck rows
    set nocount on;
    declare @most int = 1000;
    declare @count int;
    declare @ids nvarchar(max);
    declare @again nvarchar(max);
    declare @freed table (message_id bigint not null primary key);

    -- What this passes over is not committed yet, which only happens while the archive still keeps
    -- the predecessor, and the archiver comes for it; or another session frees it.
    with head as (
        select top (@most) s.part_id, s.predecessor_id, s.message_id
        from rowq.successor s with (rowlock, updlock, readpast, readcommittedlock, forceseek)
        where s.part_id = @part_id
          and s.predecessor_id = @predecessor_id
        order by s.message_id
    )
    delete from head
    output deleted.message_id
    into @freed (message_id)
    option (maxdop 1, keepfixed plan);
    set @count = @@rowcount;
    if @count = 0
        return;
    if @count = @most
        insert into rowq.recheck with (rowlock) (part_id, due_at, recheck_id, predecessor_id)
        values (@part_id, sysutcdatetime(), next value for rowq.message_seq, @predecessor_id);

    select @ids = N'[' + string_agg(cast(f.message_id as nvarchar(max)), N',') + N']'
    from @freed f;
    exec rowq.InternalLetGo @part_id, @ids, @predecessor_id, @may_join, @again output;
    if @again is not null
        insert into rowq.recheck with (rowlock) (part_id, due_at, recheck_id, message_id)
        select @part_id, sysutcdatetime(), next value for rowq.message_seq, cast(j.value as bigint)
        from openjson(@again) j
        option (maxdop 1);
end
go

-- [file internal/from_microseconds.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalFromMicroseconds
    @microseconds bigint,
    @moment datetime2(6) output
as
begin
-- routine   InternalFromMicroseconds
-- purpose   Return the moment that is so many microseconds after the beginning of 1970.
-- differs   other engines have an expression for it
    set nocount on;
    -- dateadd takes an int, so the moment is built in three steps. A literal beyond int would make
    -- the division a numeric one, which fails under numeric_roundabort.
    set @moment = dateadd(
        microsecond, cast(@microseconds % 1000000 as int),
        dateadd(
            second, cast(@microseconds / 1000000 % 86400 as int),
            dateadd(
                day, cast(@microseconds / 1000000 / 86400 as int),
                cast('19700101' as datetime2(6))
            )
        )
    );
end
go

-- [file internal/give_up_messages.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalGiveUpMessages
    @queue_name nvarchar(max),
    @claim_id bigint,
    @message_ids nvarchar(max),
    @outcome nvarchar(20),
    @error nvarchar(max) = null
as
begin
-- routine   InternalGiveUpMessages
-- purpose   Take messages from a claim, end those that were cancelled, and make the others dead or released, as @outcome says; returns the rows.
-- promise   P08 P10 P34 P37
-- locks     the part, shared; the claim row; then dead, message and dedup rows, or new ready rows;
--           for cancelled messages as complete; rows of groups and of messages that wait, tried
--           only; new history rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   no such helper elsewhere: only here both routines need a transaction of their own
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @has_cancels bit;
    declare @history_days int;
    declare @worker_name nvarchar(400);
    declare @leased_at datetime2(6);
    declare @asked table (
        message_id bigint not null,
        place      int not null,
        primary key (message_id, place)
    );
    declare @taken rowq.message_list;
    declare @ended rowq.message_list;

    -- A refusal must not doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- If the caller's transaction begins here, then at the caller's isolation level.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalCheckIds @message_ids;
            if @claim_id is null
                exec rowq.InternalRefuse N'claim_id is missing';
            if @message_ids is not null
                insert into @asked (place, message_id)
                select cast(j.[key] as int), cast(j.value as bigint)
                from openjson(@message_ids) j;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @part_id output, @history_days = @history_days output;
            exec rowq.InternalLockClaim
                @part_id, @claim_id, @message_ids, @has_cancels = @has_cancels output,
                @worker_name = @worker_name output, @leased_at = @leased_at output;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            delete l
            output deleted.message_id, deleted.lane, deleted.seq, deleted.attempt,
                   deleted.is_cancelled
            into @taken (message_id, lane, place, attempt, is_cancelled)
            from rowq.leased l with (rowlock, forceseek)
            where l.part_id = @part_id
              and l.claim_id = @claim_id
              and (
                  @message_ids is null
                  or exists (select 1 from @asked a where a.message_id = l.message_id)
              )
            option (loop join, maxdop 1, keepfixed plan);
            if @message_ids is null
                exec rowq.InternalDeleteClaim @part_id, @claim_id;
            else
                exec rowq.InternalDeleteEmptyClaim @part_id, @claim_id;
            if @history_days > 0
                exec rowq.InternalPushHistory
                    @part_id, @claim_id, @worker_name, @leased_at, @taken, @outcome, @error;
            if @has_cancels = 1
            begin
                delete j
                output deleted.message_id, deleted.lane, deleted.place, deleted.attempt
                into @ended (message_id, lane, place, attempt)
                from @taken j
                where j.is_cancelled = 1;
                exec rowq.InternalEndCancelled @part_id, @ended, @owns_transaction;
            end;
            if @outcome = N'dead'
                exec rowq.InternalPushDead @part_id, @taken, @error, @owns_transaction;
            else
                exec rowq.InternalPushReady @part_id, @taken, @is_front = 1, @spent = 1;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- The victim of a deadlock, with nothing else to lose, begins again. So does a call
            -- that came to a group at the same moment as a producer.
            set @tries_left = iif(
                @owns_transaction = 1
                    and (
                        error_number() = 1205
                        or error_number() = 1222
                            and error_procedure() like N'%InternalTryEnterGroup'
                    ),
                @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
            delete from @asked;
            delete from @taken;
            delete from @ended;
        end catch;
    end;

    -- All that the claim held, in the order of delivery; or what was asked for, in that order.
    if @message_ids is null
        select j.message_id, j.outcome
        from (
            select t.message_id, t.lane, t.place, @outcome as outcome
            from @taken t
            union all
            select e.message_id, e.lane, e.place, N'cancelled'
            from @ended e
        ) j
        order by j.lane, j.place, j.message_id;
    else
        select a.message_id,
               case
                   when j.message_id is not null then @outcome
                   when e.message_id is not null then N'cancelled'
                   else N'stale'
               end as outcome
        from @asked a
        left join @taken j on j.message_id = a.message_id
        left join @ended e on e.message_id = a.message_id
        order by a.place;
end
go

-- [file internal/give_up_tick.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalGiveUpTick
    @part_id int,
    @schedule_key varbinary(402),
    @error nvarchar(4000)
as
begin
-- routine   InternalGiveUpTick
-- purpose   Note why the due tick of a schedule made no message, and let it go on from now.
-- promise   P30 P31
-- locks     the schedule row, tried
-- errors    RQ711
-- differs   no such helper on PostgreSQL: part of internal_run_due
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @cron nvarchar(200);
    declare @bits nvarchar(200);
    declare @interval_seconds float;
    declare @time_zone nvarchar(128);
    declare @windows_name nvarchar(128);
    declare @starts_at datetime2(6);
    declare @ends_at datetime2(6);
    declare @tick datetime2(6);

    select @cron = s.cron, @interval_seconds = s.interval_seconds, @time_zone = s.time_zone,
           @starts_at = s.starts_at, @ends_at = s.ends_at
    from rowq.schedule s with (rowlock, readpast, readcommittedlock, forceseek)
    where s.part_id = @part_id
      and s.schedule_key = @schedule_key
    option (maxdop 1);
    if @@rowcount = 0
        return;
    begin try
        exec rowq.InternalWindowsZone @time_zone, @windows_name output;
        if @cron is not null
            exec rowq.InternalParseCron @cron, @bits output;
        exec rowq.InternalNextTick
            @bits, @interval_seconds, @windows_name, @starts_at, @ends_at, @now, @tick output;
    end try
    begin catch
        -- A schedule whose time zone the server has lost has no next tick until it is altered. It
        -- must not stop all others.
        if xact_state() = -1
            throw;
        set @tick = null;
    end catch;

    -- A row that another session has changed meanwhile is not due any more.
    update s
    set next_run_at = @tick,
        last_error  = left(@error collate Latin1_General_100_CI_AS_SC, 2000)
    from rowq.schedule s with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where s.part_id = @part_id
      and s.schedule_key = @schedule_key
      and s.next_run_at <= @now
    option (maxdop 1);
end
go

-- [file internal/health_server.sql]
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
    -- Azure SQL requires a right on the database here, and a server requires one on the server.
    declare @may_look int = iif(
        cast(serverproperty('EngineEdition') as int) = 5,
        has_perms_by_name(db_name(), N'DATABASE', N'VIEW DATABASE STATE'),
        has_perms_by_name(null, null, N'VIEW SERVER STATE')
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

-- [file internal/hint_groups.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalHintGroups
    @part_id int
as
begin
-- routine   InternalHintGroups
-- purpose   Have maintain look whether each group in which messages wait may have more of them in work.
-- promise   P24
-- locks     new recheck rows
    set nocount on;
    declare @group_key varbinary(802) = 0x;

    -- Go from group to group and not from message to message.
    while 1 = 1
    begin
        select top (1) @group_key = g.group_key
        from rowq.grouped g with (rowlock, readpast, readcommittedlock, forceseek)
        where g.part_id = @part_id
          and g.group_key > @group_key
        order by g.group_key, g.message_id
        option (maxdop 1, keepfixed plan);
        if @@rowcount = 0
            break;
        insert into rowq.recheck with (rowlock) (part_id, due_at, recheck_id, group_key, is_hint)
        values (@part_id, sysutcdatetime(), next value for rowq.message_seq, @group_key, 1);
    end;
end
go

-- [file internal/is_blocked.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalIsBlocked
    @part_id int,
    @message_id bigint,
    @is_blocked bit output
as
begin
-- routine   InternalIsBlocked
-- purpose   Ask whether a message may still be among those that wait for others: 1 where another session has locked it, too.
-- locks     the blocked row, shared while it is read, tried only
-- differs   no such helper elsewhere: there a plain read tells
    set nocount on;
    declare @found_id bigint;

    -- As in InternalAwaitPredecessor, error 1222 must not end the transaction.
    set xact_abort off;
    begin try
        select @found_id = b.message_id
        from rowq.blocked b with (rowlock, readcommittedlock, nowait, forceseek)
        where b.part_id = @part_id
          and b.message_id = @message_id;
        set @is_blocked = iif(@found_id is null, 0, 1);
    end try
    begin catch
        if error_number() <> 1222
            throw;
        set @is_blocked = 1;
    end catch;
end
go

-- [file internal/join_groups.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalJoinGroups
    @part_id int,
    @group_limit int,
    @messages rowq.message_list readonly
as
begin
-- routine   InternalJoinGroups
-- purpose   Let messages join their groups: one that gets a token is ready, with its place as seq, and so is one without a group; the others wait.
-- promise   P21 P22
-- locks     as InternalEnterGroup, in the order of the keys; new ready and grouped rows
-- differs   elsewhere the caller makes messages ready
    set nocount on;
    declare @turn int = 0;
    declare @group_key varbinary(802);
    declare @full_key varbinary(802) = 0x;
    declare @has_token bit;
    declare @joining table (
        turn       int not null primary key,
        message_id bigint not null,
        group_key  varbinary(802) not null,
        has_token  bit not null
    );

    insert into @joining (turn, message_id, group_key, has_token)
    select row_number() over (order by j.group_key, j.message_id), j.message_id, j.group_key, 0
    from @messages j
    where j.group_key is not null;

    while 1 = 1
    begin
        set @turn += 1;
        select @group_key = j.group_key from @joining j where j.turn = @turn;
        if @@rowcount = 0
            break;
        -- A group that is full stays so until the end of this transaction.
        if @group_key = @full_key
            continue;
        exec rowq.InternalEnterGroup @part_id, @group_key, @group_limit, @has_token output;
        if @has_token = 1
            update @joining set has_token = 1 where turn = @turn;
        else
            set @full_key = @group_key;
    end;

    insert into rowq.ready with (rowlock) (part_id, lane, seq, message_id, attempt)
    select @part_id, j.lane, j.place, j.message_id, j.attempt
    from @messages j
    where not exists (
              select 1
              from @joining w
              where w.message_id = j.message_id
                and w.has_token = 0
          )
    option (hash join, maxdop 1);
    insert into rowq.grouped with (rowlock) (part_id, group_key, message_id, lane)
    select @part_id, w.group_key, w.message_id, j.lane
    from @joining w
    inner join @messages j on j.message_id = w.message_id
    where w.has_token = 0
    option (loop join, force order, maxdop 1);
end
go

-- [file internal/leave_groups.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalLeaveGroups
    @part_id int,
    @messages rowq.message_list readonly,
    @may_close bit
as
begin
-- routine   InternalLeaveGroups
-- purpose   Pass on the tokens of messages that have ended, one for each; leave to maintain those that cannot be passed on now.
-- promise   P22 P23 P24
-- locks     as InternalPassGroup; new ready and recheck rows
    set nocount on;
    declare @group_limit int;
    declare @pause float;
    declare @place int = 0;
    declare @group_key varbinary(802);
    declare @message_id bigint;
    declare @lane smallint;
    declare @is_left bit;
    declare @turns table (
        place     int not null primary key,
        group_key varbinary(802) not null
    );
    declare @ready rowq.message_list;

    select @group_limit = q.group_limit, @pause = q.group_pause_seconds
    from rowq.queue q
    where q.part_id = @part_id;
    if @pause > 0
    begin
        -- The group rests: maintain goes on when that is over.
        insert into rowq.recheck with (rowlock) (part_id, due_at, recheck_id, group_key)
        select @part_id,
               dateadd(
                   microsecond, cast(round((@pause - floor(@pause)) * 1e6, 0) as int),
                   dateadd(second, cast(floor(@pause) as int), sysutcdatetime())
               ),
               next value for rowq.message_seq, j.group_key
        from @messages j
        option (maxdop 1);
        return;
    end;

    -- Several messages of one group may end at once where its limit is above 1: groups take turns.
    insert into @turns (place, group_key)
    select row_number() over (order by t.turn, t.group_key), t.group_key
    from (
        select j.group_key, row_number() over (
                   partition by j.group_key
                   order by j.message_id
               ) as turn
        from @messages j
    ) t;

    while 1 = 1
    begin
        set @place += 1;
        select @group_key = t.group_key from @turns t where t.place = @place;
        if @@rowcount = 0
            break;
        exec rowq.InternalPassGroup
            @part_id, @group_key, @group_limit, @may_close, @message_id output, @lane output,
            @is_left output;
        if @message_id is not null
            insert into @ready (message_id, lane, place, attempt)
            values (@message_id, @lane, @place, 0);
        if @is_left = 1
            insert into rowq.recheck with (rowlock) (part_id, due_at, recheck_id, group_key)
            values (@part_id, sysutcdatetime(), next value for rowq.message_seq, @group_key);
    end;
    if exists (select 1 from @ready)
        exec rowq.InternalPushReady @part_id, @ready;
end
go

-- [file internal/let_go.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalLetGo
    @part_id int,
    @message_ids nvarchar(max),
    @ended_id bigint,
    @may_join bit,
    @again nvarchar(max) output
as
begin
-- routine   InternalLetGo
-- purpose   Let blocked messages go on that wait for nothing any more; those that fail with a predecessor are dead. @again are the ids of those that need another look.
-- promise   P25 P26 P27
-- locks     as InternalUnblock and InternalFollowDeaths
    set nocount on;
    declare @failed nvarchar(max);

    exec rowq.InternalUnblock
        @part_id, @message_ids, @ended_id, @may_join, @again output, @failed output;
    if @failed is not null
        exec rowq.InternalFollowDeaths @part_id, null, @failed, @may_join;
end
go

-- [file internal/locate_messages.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalLocateMessages
    @part_id int,
    @message_id bigint,
    @enqueued_at datetime2(6),
    @group_key nvarchar(400),
    @due_at datetime2(6) output,
    @state nvarchar(20) output,
    @lane smallint output,
    @attempt smallint output,
    @claim_id bigint output,
    @worker_name nvarchar(400) output,
    @lease_until datetime2(6) output,
    @finished_at datetime2(6) output,
    @waits_for bigint output,
    @progress nvarchar(4000) output,
    @leased_at datetime2(6) = null output
as
begin
-- routine   InternalLocateMessages
-- purpose   Find where a message is that still has a body; @due_at is passed in as its last place in delayed.
-- locks     rows, shared while they are read, passing over locked ones
    set nocount on;
    declare @was_due_at datetime2(6) = @due_at;
    declare @group_bytes varbinary(802) = convert(varbinary(802), @group_key + N'.');
    set @due_at = null;
    set @state = null;

    -- A message that waits for others goes to each of the other places from there, so look for it
    -- first.
    select @state = N'blocked', @lane = b.lane, @attempt = 0, @due_at = b.due_at,
           @waits_for = b.predecessor_id
    from rowq.blocked b with (rowlock, readpast, readcommittedlock, forceseek)
    where b.part_id = @part_id
      and b.message_id = @message_id;

    if @state is null
        select @state = N'delayed', @lane = d.lane, @attempt = d.attempt, @due_at = d.due_at
        from rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
        where d.part_id = @part_id
          and d.due_at = @was_due_at
          and d.message_id = @message_id;

    if @state is null
        select @state = N'dead', @lane = d.lane, @attempt = d.attempt, @finished_at = d.died_at
        from rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
        where d.part_id = @part_id
          and d.message_id = @message_id;

    if @state is null and @group_key is not null
    begin
        select @state = N'blocked', @lane = x.lane, @attempt = 0
        from rowq.grouped x with (rowlock, readpast, readcommittedlock, forceseek)
        where x.part_id = @part_id
          and x.group_key = @group_bytes
          and x.message_id = @message_id;
        if @state = N'blocked'
            select top (1) @waits_for = x.message_id
            from rowq.grouped x with (rowlock, readpast, readcommittedlock, forceseek)
            where x.part_id = @part_id
              and x.group_key = @group_bytes
              and x.message_id < @message_id
            order by x.message_id desc
            option (maxdop 1);
    end;

    if @state is null
        select top (1) @state = N'leased', @lane = l.lane, @attempt = l.attempt,
               @claim_id = c.claim_id, @worker_name = c.worker_name, @lease_until = c.lease_until,
               @progress = c.progress, @leased_at = c.leased_at
        from rowq.leased l with (rowlock, readpast, readcommittedlock, forceseek)
        inner join rowq.claim c with (rowlock, readpast, readcommittedlock, forceseek)
            on c.part_id = @part_id
           and c.claim_id = l.claim_id
        where l.part_id = @part_id
          and l.message_id = @message_id
        option (loop join, force order, maxdop 1);

    if @state is null
        select top (1) @state = f.state, @lane = f.lane, @attempt = f.attempt,
               @finished_at = f.finished_at
        from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
        where f.part_id = @part_id
          and f.message_id = @message_id
        option (maxdop 1);

    -- A message that was never given back is in the tail lane of its priority, where its seq is the
    -- moment of its enqueued_at.
    if @state is null
        select top (1) @state = N'ready', @lane = r.lane, @attempt = r.attempt
        from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
        where r.part_id = @part_id
          and r.lane in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
          and r.seq = datediff_big(microsecond, '19700101', @enqueued_at)
          and r.message_id = @message_id
        option (maxdop 1);

    if @state is null
        select top (1) @state = N'ready', @lane = r.lane, @attempt = r.attempt
        from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
        where r.part_id = @part_id
          and r.message_id = @message_id
        option (maxdop 1);

    if @state is null
        -- Another session is moving the message, or has moved it between these looks, so it is in
        -- that session's hands: report it as leased.
        set @state = N'leased';
end
go

-- [file internal/lock_claim.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalLockClaim
    @part_id int,
    @claim_id bigint,
    @message_ids nvarchar(max),
    @held_until datetime2(6) = null output,
    @has_cancels bit = null output,
    @worker_name nvarchar(400) = null output,
    @leased_at datetime2(6) = null output
as
begin
-- routine   InternalLockClaim
-- purpose   Lock a claim before messages are taken out of it; raise an error if it is gone and no list of messages is given.
-- promise   P08
-- locks     the claim row, first of all
-- errors    RQ721
    set nocount on;
    declare @text nvarchar(2048) = concat(
        N'RQ721 stale_claim: claim ', @claim_id, N' holds nothing any more'
    );
    set @held_until = null;
    set @has_cancels = null;
    set @worker_name = null;
    set @leased_at = null;

    select @held_until = c.lease_until, @has_cancels = c.has_cancels,
           @worker_name = c.worker_name, @leased_at = c.leased_at
    from rowq.claim c with (rowlock, updlock, forceseek)
    where c.part_id = @part_id
      and c.claim_id = @claim_id;
    if @held_until is null and @message_ids is null
        throw 52721, @text, 1;
end
go

-- [file internal/lock_gate.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalLockGate
    @part_id int,
    @is_locked bit output
as
begin
-- routine   InternalLockGate
-- purpose   Lock the gate of a limited queue; return whether that was done in a tenth of a second.
-- promise   P28 P29
-- locks     the gate of the queue, tried for a tenth of a second
    set nocount on;
    declare @tries_left int = 10;
    declare @pause char(12) = '00:00:00.010';
    declare @gate int;

    while 1 = 1
    begin
        select @gate = g.part_id
        from rowq.gate g with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where g.part_id = @part_id
        option (maxdop 1, keepfixed plan);
        if @gate is not null or @tries_left = 0
            break;
        set @tries_left -= 1;
        waitfor delay @pause;
    end;
    set @is_locked = iif(@gate is null, 0, 1);
end
go

-- [file internal/lock_part_exclusive.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalLockPartExclusive
    @part_id int,
    @queue_name nvarchar(max)
as
begin
-- routine   InternalLockPartExclusive
-- purpose   Lock a queue against all calls that add or move messages; raise an error if it stays in use for a second.
-- promise   P02 P15
-- locks     the row of the part, for itself
-- errors    RQ701 RQ705
-- differs   elsewhere drop_queue locks a table, or waits at once for all of a second
    set nocount on;
    set xact_abort off;
    set lock_timeout 20;
    declare @tries_left int = 10;
    declare @pause char(12) = '00:00:00.080';
    declare @found_part_id int;

    -- Everybody who comes later waits behind a session that waits for this lock. So wait for a
    -- moment only, and let the others through before the next try.
    while 1 = 1
    begin
        begin try
            -- @found_part_id stays null if another session has dropped the queue.
            select @found_part_id = p.part_id
            from rowq.part p with (rowlock, xlock, forceseek)
            where p.part_id = @part_id;
            break;
        end try
        begin catch
            -- 1222 means that lock_timeout has ended the wait.
            if error_number() <> 1222
                throw;
        end catch;
        set @tries_left -= 1;
        if @tries_left = 0
            throw 52705, N'RQ705 queue_busy: open transactions hold the queue; try again', 1;
        waitfor delay @pause;
    end;
    if @found_part_id is null
        exec rowq.InternalRefuseQueue @queue_name;
end
go

-- [file internal/lock_part_shared.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalLockPartShared
    @part_id int,
    @queue_name nvarchar(max)
as
begin
-- routine   InternalLockPartShared
-- purpose   Keep a queue from being dropped while messages are added or moved.
-- promise   P01 P02
-- locks     the row of the part, shared, to the end of the transaction; waits for a drop
-- errors    RQ701
-- differs   on PostgreSQL the first insert waits for a drop
    set nocount on;
    declare @found_part_id int;
    -- Lock the row to the end of the transaction (repeatableread). @found_part_id is null if
    -- another session has dropped the queue.
    select @found_part_id = p.part_id
    from rowq.part p with (rowlock, repeatableread, forceseek)
    where p.part_id = @part_id;
    if @found_part_id is null
        exec rowq.InternalRefuseQueue @queue_name;
end
go

-- [file internal/maintain.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalMaintain
    @queue_name nvarchar(max),
    @batch_size int,
    @is_quiet bit
as
begin
-- routine   InternalMaintain
-- purpose   Do the housekeeping of one queue, or of every queue, and return a row for each unless @is_quiet.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P32 P36 P37
-- locks     a row of lane of each queue in turn, passed over when locked; as promote, reap,
--           InternalRunSchedules, archive
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   no such helper elsewhere: here the job of SQL Server Agent wants no rows each second
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    declare @begun int;
    declare @part_id int;
    declare @elected bit;
    declare @has_due bit;
    declare @promoted int;
    declare @reaped int;
    declare @died int;
    declare @expired int;
    declare @archived int;
    declare @purged int;
    declare @more int;
    declare @dropped int;
    -- More than a batch of results and history goes only till then, whatever the number of queues;
    -- results leave history half of that time.
    declare @until datetime2(6) = dateadd(millisecond, 100, sysutcdatetime());
    declare @until_results datetime2(6) = dateadd(millisecond, -50, @until);
    declare @parts table (part_id int not null primary key);
    declare @rows table (
        part_id            int not null primary key,
        elected            bit not null,
        promoted           int not null,
        reaped             int not null,
        died               int not null,
        archived           int not null,
        purged             int not null,
        partitions_dropped int not null,
        expired            int not null
    );

    begin try
        exec rowq.InternalCheckBatchSize @batch_size;
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        if @queue_name is null
            insert into @parts (part_id)
            select top (1000) q.part_id from rowq.queue q order by newid();
        else
        begin
            exec rowq.InternalRequireQueue @queue_name, @part_id output;
            insert into @parts (part_id) values (@part_id);
        end;

        while 1 = 1
        begin
            set @part_id = null;
            select top (1) @part_id = p.part_id from @parts p order by p.part_id;
            if @part_id is null
                break;
            delete from @parts where part_id = @part_id;
            begin try
                exec rowq.InternalMaintainDelivery
                    @part_id, @batch_size, @elected output, @promoted output, @reaped output,
                    @died output, @expired output, @has_due output;
                if @elected = 1 and @has_due = 1
                    exec rowq.InternalRunSchedules @part_id;
                set @archived = 0;
                set @purged = 0;
                set @dropped = 0;
                if @elected = 1
                begin
                    exec rowq.InternalMaintainArchive
                        @part_id, @batch_size, @archived output, @purged output, @dropped output;
                    exec rowq.InternalMaintainKept
                        @part_id, N'results', @batch_size, @until_results, @more output;
                    set @purged += @more;
                    exec rowq.InternalMaintainKept
                        @part_id, N'history', @batch_size, @until, @more output;
                    set @purged += @more;
                end;
                insert into @rows (
                    part_id, elected, promoted, reaped, died, archived, purged, partitions_dropped,
                    expired
                )
                values (
                    @part_id, @elected, @promoted, @reaped, @died, @archived, @purged, @dropped,
                    @expired
                );
            end try
            begin catch
                -- A queue that was dropped meanwhile is an error only if the caller has named it.
                if @queue_name is not null or error_number() <> 52701
                    throw;
            end catch;
        end;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;

    if @is_quiet = 1
        return;
    select q.queue_name, j.elected, j.promoted, j.reaped, j.died, j.archived, j.purged,
           j.partitions_dropped, j.expired
    from @rows j
    inner join rowq.queue q on q.part_id = j.part_id
    order by j.part_id;
end
go

-- [file internal/maintain_archive.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalMaintainArchive
    @part_id int,
    @limit int,
    @archived int output,
    @purged int output,
    @partitions_dropped int output
as
begin
-- routine   InternalMaintainArchive
-- purpose   Run the archive part of maintain: drop partitions, move, purge whole days; an error in it is printed, not raised.
-- promise   P09 P19
-- locks     as archive and purge_archive
-- commits   where the caller has no transaction, after each 1000 messages; never the caller's
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    set lock_timeout 1000;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @is_saved bit = 0;
    declare @tries_left int = 5;
    declare @begun int;
    declare @archive_days int;
    declare @is_open bit;
    declare @before datetime2(6);
    declare @step int;
    declare @done int;
    declare @text nvarchar(2048);
    set @archived = 0;
    set @purged = 0;
    set @partitions_dropped = 0;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            set @archive_days = 0;
            set @is_open = 0;
            select @archive_days = q.archive_days
            from rowq.queue q
            where q.part_id = @part_id;
            -- To look into the archive itself would cost a seek a day that any queue keeps.
            select @is_open = l.is_open
            from rowq.lane l with (readuncommitted, forceseek)
            where l.part_id = @part_id
              and l.lane = -3;
            if @archive_days = 0
                and @is_open = 0
                and not exists (
                    select 1
                    from rowq.finished f with (readuncommitted)
                    where f.part_id = @part_id
                )
                break;
            if @owns_transaction = 1
            begin
                exec rowq.InternalDropDays @partitions_dropped output;
                exec rowq.InternalOpenDays @part_id;
            end;
            else
            begin
                save transaction rowq_call;
                set @is_saved = 1;
            end;

            while @archived < @limit
            begin
                set @step = iif(@limit - @archived < 1000, @limit - @archived, 1000);
                if @owns_transaction = 1
                    begin transaction;
                exec rowq.InternalArchive @part_id, @step, @done output;
                if @owns_transaction = 1
                    commit transaction;
                set @archived += @done;
                if @done < @step
                    break;
            end;
            -- Purge whole days, because dropping a partition costs less than deleting its rows. A
            -- queue that keeps no archive any more is purged up to now.
            set @before = iif(
                @archive_days > 0,
                cast(cast(dateadd(day, -@archive_days, sysutcdatetime()) as date) as datetime2(6)),
                sysutcdatetime()
            );
            while @purged < @limit
            begin
                set @step = iif(@limit - @purged < 1000, @limit - @purged, 1000);
                exec rowq.InternalPurgeArchive @part_id, @before, @step, @done output;
                set @purged += @done;
                if @done < @step
                    break;
            end;
            if @archive_days = 0 and @purged < @limit
                update l
                set is_open = 0
                from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                where l.part_id = @part_id
                  and l.lane = -3
                  and l.is_open = 1
                  and not exists (
                      select 1
                      from rowq.archived a with (readcommittedlock)
                      where a.part_id = @part_id
                  )
                option (loop join, maxdop 1);
            break;
        end try
        begin catch
            -- Take back the work of this call only: its own transaction, or the caller's down to
            -- the savepoint. There is no way back to a savepoint in a transaction that is doomed.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;
            else if @is_saved = 1 and xact_state() = 1
                rollback transaction rowq_call;
            -- The steps of an own transaction are committed, those of a guest are all taken back.
            if @owns_transaction = 0
                set @archived = 0;
            if @owns_transaction = 0
                set @purged = 0;

            -- If the caller's transaction is lost, the caller must get the error.
            if @owns_transaction = 0 and xact_state() <> 1
                throw;
            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            -- An error in the archive, such as a full disk, is only printed, because promoting and
            -- reaping must go on.
            if @tries_left = 0
            begin
                set @text = left(concat(N'rowq archive: ', error_message()), 2000);
                print @text;
            end;
        end catch;
    end;
end
go

-- [file internal/maintain_delivery.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalMaintainDelivery
    @part_id int,
    @limit int,
    @elected bit output,
    @promoted int output,
    @reaped int output,
    @died int output,
    @expired int output,
    @has_due bit output
as
begin
-- routine   InternalMaintainDelivery
-- purpose   Run the part of maintain that deliveries wait for, in the one session that is elected: floors, what was left, reap, expire, promote, starts. @has_due says that a schedule is due.
-- promise   P09 P11 P13 P14 P24 P26 P27 P36 P37
-- locks     the part, shared; rows of lane, passed over when locked; as InternalRecheck, reap,
--           InternalExpire, promote, InternalPurgeStarted; the queue row, tried
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @now datetime2(6) = sysutcdatetime();
    declare @begun int;
    declare @queue_name nvarchar(200);
    declare @max_attempts int;
    declare @archive_days int;
    declare @turn smallint;
    declare @has_recheck bit;
    declare @has_notes bit;
    declare @has_starts bit;
    declare @has_expiry bit;
    declare @history_days int;
    declare @rate_seconds float;
    declare @most_starts int = 10 * @limit;
    declare @solved int;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            if @owns_transaction = 1
                begin transaction;
            set @max_attempts = null;
            set @has_due = 0;
            select @max_attempts = q.max_attempts, @queue_name = q.queue_name,
                   @archive_days = q.archive_days,
                   @has_recheck = q.has_recheck,
                   @has_notes = case
                       when q.has_recheck = 1 then 1
                       when exists (
                           select 1
                           from rowq.recheck r
                               with (rowlock, readpast, readcommittedlock, forceseek)
                           where r.part_id = @part_id
                       ) then 1
                       else 0
                   end,
                   @has_starts = case
                       when q.rate_limit > 0 then 1
                       when exists (
                           select 1
                           from rowq.started s
                               with (rowlock, readpast, readcommittedlock, forceseek)
                           where s.part_id = @part_id
                       ) then 1
                       else 0
                   end,
                   @rate_seconds = iif(q.rate_limit > 0, q.rate_seconds, 0),
                   @history_days = q.history_days,
                   @has_expiry = case
                       when exists (
                           select 1
                           from rowq.lane l with (readuncommitted, forceseek)
                           where l.part_id = @part_id
                             and l.lane = -8
                             and l.is_open = 1
                       ) then 1
                       when exists (
                           select 1
                           from rowq.expiry e
                               with (rowlock, readpast, readcommittedlock, forceseek)
                           where e.part_id = @part_id
                       ) then 1
                       else 0
                   end,
                   @has_due = case
                       when exists (
                           select 1
                           from rowq.schedule s
                               with (rowlock, readpast, readcommittedlock, forceseek)
                           where s.part_id = @part_id
                             and s.next_run_at <= @now
                       ) then 1
                       else 0
                   end
            from rowq.queue q
            where q.part_id = @part_id;
            set @queue_name = coalesce(@queue_name, N'');
            exec rowq.InternalLockPartShared @part_id, @queue_name;
            set @promoted = 0;
            set @reaped = 0;
            set @died = 0;
            set @expired = 0;
            -- This row elects the session that runs maintain. A lock by name would not do, because
            -- every user of the database could hold it.
            set @turn = null;
            select @turn = l.lane
            from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where l.part_id = @part_id
              and l.lane = -5;
            set @elected = iif(@turn is null, 0, 1);
            if @elected = 0
            begin
                if @owns_transaction = 1
                    commit transaction;
                break;
            end;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            -- From now on maintain keeps the floor of expiry. This is committed before the first
            -- note is forgotten, because whoever moves messages looks for one, or at this.
            if @has_expiry = 1 and @owns_transaction = 1
                update l
                set is_open = 1
                from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                where l.part_id = @part_id
                  and l.lane = -8
                  and l.is_open = 0;
            -- Put the floors right first, so that the steps below find what was committed late.
            exec rowq.InternalRescanFloors @part_id;
            -- While a floor goes up, guests wait for the lane of guests. So commit here, and elect
            -- once more: only a session that is faster now takes the rest over.
            if @owns_transaction = 1
                commit transaction;
            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalLockPartShared @part_id, @queue_name;
            set @turn = null;
            select @turn = l.lane
            from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where l.part_id = @part_id
              and l.lane = -5;
            if @turn is not null
            begin
                if @has_notes = 1
                    exec rowq.InternalRecheck
                        @part_id, @limit, @owns_transaction, @solved output;
                exec rowq.InternalReap
                    @part_id, @max_attempts, @history_days, @limit, @owns_transaction,
                    @reaped output, @died output;
                -- Nobody can say how long the caller's transaction will hold what is withdrawn.
                if @has_expiry = 1
                    and @owns_transaction = 1
                    and exists (
                        select 1
                        from rowq.lane l with (readuncommitted, forceseek)
                        where l.part_id = @part_id
                          and l.lane = -8
                          and l.is_open = 1
                    )
                    exec rowq.InternalExpire @part_id, @archive_days, @limit, @expired output;
                -- Promote last: for a message that waits in its group then, it holds a token by an
                -- update lock, which the steps before would have to convert.
                exec rowq.InternalPromote @part_id, @limit, @owns_transaction, @promoted output;
                if @has_starts = 1
                    exec rowq.InternalPurgeStarted
                        @part_id, @rate_seconds, @most_starts, @owns_transaction;
                if @has_notes > @has_recheck and @owns_transaction = 1
                begin
                    -- From now on a dequeue that finds nothing looks at recheck, too, and the floor
                    -- of recheck is kept.
                    update l
                    set is_open = 1
                    from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                    where l.part_id = @part_id
                      and l.lane = -6;
                    update q
                    set has_recheck = 1
                    from rowq.queue q with (rowlock, xlock, readpast, readcommittedlock)
                    where q.part_id = @part_id;
                end;
            end;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again. So does one that came to a group at the same moment as a producer.
            set @tries_left = iif(
                @owns_transaction = 1
                    and (
                        error_number() = 1205
                        or error_number() = 1222
                            and error_procedure() like N'%InternalTryEnterGroup'
                    ),
                @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;
end
go

-- [file internal/maintain_kept.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalMaintainKept
    @part_id int,
    @what nvarchar(7),
    @limit int,
    @until datetime2(6),
    @purged int output
as
begin
-- routine   InternalMaintainKept
-- purpose   Purge N'results' or N'history' in maintain, a queue's first @limit old rows, and till @until up to ten times as many; an error in it is printed, not raised.
-- promise   P13 P32 P37
-- locks     as InternalPurgeResults or InternalPurgeHistory
-- commits   where the caller has no transaction, after each 1000 rows; never the caller's
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    set lock_timeout 1000;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @is_saved bit = 0;
    declare @tries_left int = 5;
    declare @begun int;
    declare @result_seconds float;
    declare @history_days int;
    declare @has_rows bit;
    declare @rest int;
    declare @step int;
    declare @done int;
    declare @text nvarchar(2048);
    set @purged = 0;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            set @has_rows = 0;
            select @result_seconds = q.result_seconds, @history_days = q.history_days,
                   @has_rows = case
                       when @what = N'results' and q.result_seconds > 0 then 1
                       when @what = N'history' and q.history_days > 0 then 1
                       when @what = N'results' and exists (
                           select 1
                           from rowq.result r
                               with (
                                   index (result_finished_ix), rowlock, readpast, readcommittedlock,
                                   forceseek
                               )
                           where r.part_id = @part_id
                       ) then 1
                       when @what = N'history' and exists (
                           select 1
                           from rowq.history h
                               with (
                                   index (history_pk), rowlock, readpast, readcommittedlock,
                                   forceseek
                               )
                           where h.part_id = @part_id
                       ) then 1
                       else 0
                   end
            from rowq.queue q
            where q.part_id = @part_id;
            if @has_rows = 0
                break;
            if @owns_transaction = 0
            begin
                save transaction rowq_call;
                set @is_saved = 1;
            end;

            while @purged < @limit or @purged < 10 * @limit and sysutcdatetime() < @until
            begin
                set @rest = iif(@purged < @limit, @limit, 10 * @limit) - @purged;
                set @step = iif(@rest < 1000, @rest, 1000);
                if @owns_transaction = 1
                    begin transaction;
                if @what = N'results'
                    exec rowq.InternalPurgeResults
                        @part_id, @result_seconds, @step, @owns_transaction, @done output;
                else
                    exec rowq.InternalPurgeHistory
                        @part_id, @history_days, @step, @owns_transaction, @done output;
                if @owns_transaction = 1
                    commit transaction;
                set @purged += @done;
                if @done < @step
                    break;
            end;
            break;
        end try
        begin catch
            -- Take back the work of this call only: its own transaction, or the caller's down to
            -- the savepoint. There is no way back to a savepoint in a transaction that is doomed.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;
            else if @is_saved = 1 and xact_state() = 1
                rollback transaction rowq_call;
            -- The steps of an own transaction are committed, those of a guest are all taken back.
            if @owns_transaction = 0
                set @purged = 0;

            -- If the caller's transaction is lost, the caller must get the error.
            if @owns_transaction = 0 and xact_state() <> 1
                throw;
            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            -- An error is only printed, because housekeeping must go on.
            if @tries_left = 0
            begin
                set @text = left(concat(N'rowq ', @what, N': ', error_message()), 2000);
                print @text;
            end;
        end catch;
    end;
end
go

-- [file internal/moment_of_local.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalMomentOfLocal
    @local datetime2(6),
    @windows_name nvarchar(128),
    @moment datetime2(6) output
as
begin
-- routine   InternalMomentOfLocal
-- purpose   Return when the clocks of a time zone show a time: the first of two moments where they are set back over it, and the end of the gap where they are set forward over it.
    set nocount on;
    declare @day_before datetime2(6) = dateadd(hour, -24, @local);
    declare @day_after datetime2(6) = dateadd(hour, 24, @local);
    -- The moment by the offset of the day before, and by that of the day after. How the engine
    -- itself reads a local time that is there twice or never is not relied on.
    declare @before datetime2(6) = dateadd(
        minute,
        datediff(
            minute,
            cast(@day_before at time zone N'UTC' at time zone @windows_name as datetime2(6)),
            @day_before
        ),
        @local
    );
    declare @after datetime2(6) = dateadd(
        minute,
        datediff(
            minute,
            cast(@day_after at time zone N'UTC' at time zone @windows_name as datetime2(6)),
            @day_after
        ),
        @local
    );

    if cast(@before at time zone N'UTC' at time zone @windows_name as datetime2(6)) = @local
        set @moment = @before;
    else if cast(@after at time zone N'UTC' at time zone @windows_name as datetime2(6)) = @local
        set @moment = @after;
    else if @before < @after
        exec rowq.InternalOffsetChange @before, @after, @windows_name, @moment output;
    else
        exec rowq.InternalOffsetChange @after, @before, @windows_name, @moment output;
end
go

-- [file internal/move_floor.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalMoveFloor
    @part_id int,
    @lane smallint,
    @from bigint,
    @to bigint
as
begin
-- routine   InternalMoveFloor
-- purpose   Move the floor of a lane down, or up if it still is where the caller saw it.
-- promise   P13 P14
-- locks     the row of the lane, and to go up the one of the guests; passed over when locked
-- differs   PostgreSQL keeps floors in a ledger, as its readers walk dead versions
    set nocount on;
    declare @callers_lane smallint;

    -- A guest may have taken rows that a rollback would put back below the new floor. So a floor
    -- moves up only if no guest holds lane -4; otherwise @callers_lane stays null.
    if @to > @from
        select @callers_lane = l.lane
        from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where l.part_id = @part_id
          and l.lane = -4;

    -- Skip a locked row: its session is already moving the floor or opening the lane.
    update l
    set floor = @to
    from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where l.part_id = @part_id
      and l.lane = @lane
      and (l.floor > @to or l.floor = @from and @callers_lane is not null);
end
go

-- [file internal/next_cron.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalNextCron
    @bits nvarchar(200),
    @windows_name nvarchar(128),
    @after datetime2(6),
    @moment datetime2(6) output
as
begin
-- routine   InternalNextCron
-- purpose   Return the first moment after @after that a parsed cron expression names; null where the next ten years have none.
-- promise   P31
    set nocount on;
    declare @minute datetime2(6) = dateadd(
        minute, datediff(minute, '20000101', @after), cast('20000101' as datetime2(6))
    );
    declare @local datetime2(6);
    declare @next datetime2(6);
    declare @from datetime2(6);
    declare @far datetime2(6);
    declare @to datetime2(6);
    declare @change datetime2(6);
    set @moment = null;

    if substring(@bits, 135, 1) = N'1'
    begin
        -- A minute and an hour that are given fire once for each local time.
        set @next = cast(@minute at time zone N'UTC' at time zone @windows_name as datetime2(6));
        while @moment is null or @moment <= @after
        begin
            set @moment = null;
            set @local = dateadd(minute, 1, @next);
            exec rowq.InternalNextCronLocal @bits, @local, @next output;
            if @next is null
                break;
            exec rowq.InternalMomentOfLocal @next, @windows_name, @moment output;
        end;
        return;
    end;

    -- Any other one fires in each hour that there is, also in one that the clocks show twice. A
    -- time is as far away as the clocks say unless they are changed on the way. The look for that
    -- goes no further than a day, because local times that do not match are none later either.
    set @from = dateadd(minute, 1, @minute);
    while 1 = 1
    begin
        set @local = cast(@from at time zone N'UTC' at time zone @windows_name as datetime2(6));
        exec rowq.InternalNextCronLocal @bits, @local, @next output;
        if @next is null
            break;
        set @moment = dateadd(minute, datediff(minute, @local, @next), @from);
        set @far = dateadd(hour, 26, @from);
        set @to = iif(@moment < @far, @moment, @far);
        exec rowq.InternalOffsetChange @from, @to, @windows_name, @change output;
        if @change is null and @moment <= @far
            return;
        set @from = case
            when @change is not null then @change
            when dateadd(hour, -26, @moment) > @far then dateadd(hour, -26, @moment)
            else @far
        end;
    end;
    set @moment = null;
end
go

-- [file internal/next_cron_local.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalNextCronLocal
    @bits nvarchar(200),
    @from datetime2(6),
    @next datetime2(6) output
as
begin
-- routine   InternalNextCronLocal
-- purpose   Return the first minute from @from on, in local time, that a parsed cron expression names; null where the next ten years have none.
    set nocount on;
    declare @day date = @from;
    declare @end date = dateadd(day, 3660, cast(@from as date));
    declare @hour int = datepart(hour, @from);
    declare @minute int = datepart(minute, @from);
    declare @matches int;
    declare @steps int;
    set @next = null;

    while @day < @end
    begin
        if substring(@bits, 115 + datepart(month, @day), 1) = N'0'
            set @day = dateadd(
                month, 1, datefromparts(datepart(year, @day), datepart(month, @day), 1)
            );
        else
        begin
            -- 7 January 1900 was a Sunday; the weekday of datepart depends on set datefirst.
            set @matches = iif(substring(@bits, 84 + datepart(day, @day), 1) = N'1', 1, 0)
                + iif(
                    substring(@bits, 128 + datediff(day, '19000107', @day) % 7, 1) = N'1', 1, 0
                );
            -- Look for the first hour, and in that hour for the first minute.
            while @hour < 24 and @matches >= iif(substring(@bits, 136, 1) = N'1', 1, 2)
            begin
                set @steps = charindex(N'1', substring(@bits, 61 + @hour, 24 - @hour));
                if @steps = 0
                    break;
                if @steps > 1
                begin
                    set @hour += @steps - 1;
                    set @minute = 0;
                end;
                set @steps = charindex(N'1', substring(@bits, 1 + @minute, 60 - @minute));
                if @steps > 0
                begin
                    set @next = dateadd(
                        minute, @hour * 60 + @minute + @steps - 1, cast(@day as datetime2(6))
                    );
                    return;
                end;
                set @hour += 1;
                set @minute = 0;
            end;
            set @day = dateadd(day, 1, @day);
        end;
        set @hour = 0;
        set @minute = 0;
    end;
end
go

-- [file internal/next_message_id.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalNextMessageId
    @message_id bigint output
as
begin
-- routine   InternalNextMessageId
-- purpose   Return the number of a new message.
-- differs   elsewhere an expression: here its compilation may fail (error 11739) while the caller's
--           rowcount is set, and this is compiled only after the routine has set rowcount to 0
    set nocount on;
    set @message_id = next value for rowq.message_seq;
end
go

-- [file internal/next_tick.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalNextTick
    @bits nvarchar(200),
    @interval_seconds float,
    @windows_name nvarchar(128),
    @starts_at datetime2(6),
    @ends_at datetime2(6),
    @after datetime2(6),
    @tick datetime2(6) output
as
begin
-- routine   InternalNextTick
-- purpose   Return the first tick after a moment of a schedule, by its parsed cron expression or its interval; null where there is none.
-- promise   P31
    set nocount on;
    declare @since datetime2(6) = @after;
    declare @step bigint;
    declare @microseconds bigint;

    if @after < @starts_at
        set @since = dateadd(microsecond, -1, @starts_at);
    if @bits is not null
        exec rowq.InternalNextCron @bits, @windows_name, @since, @tick output;
    else if @since < @starts_at
        set @tick = @starts_at;
    else
    begin
        -- Count in microseconds from starts_at, so that the ticks do not drift.
        set @step = cast(round(@interval_seconds * 1e6, 0) as bigint);
        set @microseconds = datediff_big(microsecond, '19700101', @starts_at)
            + (datediff_big(microsecond, @starts_at, @since) / @step + 1) * @step;
        -- The type ends with the year 9999.
        set @tick = null;
        if @microseconds < 253402214400000000
            exec rowq.InternalFromMicroseconds @microseconds, @tick output;
    end;
    if @tick > @ends_at
        set @tick = null;
end
go

-- [file internal/note_cancels.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalNoteCancels
    @part_id int,
    @message_ids nvarchar(max),
    @noted_ids nvarchar(max) output
as
begin
-- routine   InternalNoteCancels
-- purpose   Note of leased messages that they were cancelled; @noted_ids are those noted, null where there is none.
-- promise   P34
-- locks     claim rows, then rows of leased, passing over locked ones
    set nocount on;
    declare @ids table (message_id bigint not null primary key);
    declare @found table (
        claim_id   bigint not null,
        lane       smallint not null,
        seq        bigint not null,
        message_id bigint not null,
        primary key (claim_id, lane, seq, message_id)
    );
    declare @claims table (claim_id bigint not null primary key);
    declare @noted table (message_id bigint not null primary key);
    set @noted_ids = null;

    -- No key leads from a message to its claim, so read what is leased once for all. A batch that
    -- another session is taking, or ending, is locked, and so passed over.
    insert into @ids (message_id)
    select distinct cast(j.value as bigint) from openjson(@message_ids) j;
    insert into @found (claim_id, lane, seq, message_id)
    select l.claim_id, l.lane, l.seq, l.message_id
    from rowq.leased l with (rowlock, readpast, readcommittedlock, forceseek)
    inner join @ids j on j.message_id = l.message_id
    where l.part_id = @part_id
    option (hash join, force order, maxdop 1);
    if @@rowcount = 0
        return;

    -- Whoever takes messages out of a claim locks its row first. So behind that lock nobody else
    -- changes rows of leased; one that a reader keeps locked is passed over, too.
    update c
    set has_cancels = 1
    output inserted.claim_id into @claims (claim_id)
    from (select distinct f.claim_id from @found f) j
    inner join rowq.claim c with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on c.part_id = @part_id
       and c.claim_id = j.claim_id
    option (loop join, force order, maxdop 1);
    update l
    set is_cancelled = 1
    output inserted.message_id into @noted (message_id)
    from @claims c
    inner join @found f on f.claim_id = c.claim_id
    inner join rowq.leased l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on l.part_id = @part_id
       and l.claim_id = f.claim_id
       and l.lane = f.lane
       and l.seq = f.seq
       and l.message_id = f.message_id
    option (loop join, force order, maxdop 1);
    select @noted_ids = N'[' + string_agg(cast(n.message_id as nvarchar(max)), N',') + N']'
    from @noted n;
end
go

-- [file internal/note_error.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalNoteError
    @part_id int,
    @messages rowq.message_list readonly,
    @error nvarchar(max),
    @is_waiting bit = 1,
    @noted int = null output
as
begin
-- routine   InternalNoteError
-- purpose   Store the error that messages failed with; unless it @is_waiting, not where a producer holds the row. @noted are how many that was.
-- promise   P10
-- locks     message rows, waited for or tried
-- differs   the last error stands beside the body, and not where the message waits
    set nocount on;
    -- The collation counts an emoji as one character, where others count it as two.
    declare @text nvarchar(4000) = left(@error collate Latin1_General_100_CI_AS_SC, 2000);

    if @is_waiting = 1
        update m
        set last_error = @text
        from @messages j
        inner join rowq.message m with (rowlock, xlock, forceseek)
            on m.part_id = @part_id
           and m.message_id = j.message_id
        option (loop join, force order, maxdop 1);
    else
        update m
        set last_error = @text
        from @messages j
        inner join rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            on m.part_id = @part_id
           and m.message_id = j.message_id
        option (loop join, force order, maxdop 1);
    set @noted = @@rowcount;
end
go

-- [file internal/note_expiry.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalNoteExpiry
    @part_id int,
    @messages rowq.message_list readonly,
    @seq bigint = null,
    @is_front bit = 0
as
begin
-- routine   InternalNoteExpiry
-- purpose   Let maintain look again for those of the messages that expire. In ready, their places are those that InternalPushReady gives them from @seq on; it is null where they wait elsewhere.
-- promise   P36
-- locks     new expiry rows
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @has_expiry bit = 0;

    -- maintain opens lane -8 before it forgets the first note of a queue. So a queue has no message
    -- that expires where there is no note, and after that look the lane is still closed.
    select @has_expiry = case
               when l.is_open = 1 then 1
               when e.message_id is not null then 1
               else a.is_open
           end
    from rowq.lane l with (readuncommitted, forceseek)
    outer apply (
        select top (1) x.message_id
        from rowq.expiry x with (rowlock, readpast, readcommittedlock, forceseek)
        where x.part_id = @part_id
          and l.is_open = 0
    ) e
    inner join rowq.lane a with (readuncommitted, forceseek)
        on a.part_id = @part_id
       and a.lane = -8
    where l.part_id = @part_id
      and l.lane = -8
    option (loop join, force order, maxdop 1);
    if @has_expiry = 0
        return;

    insert into rowq.expiry with (rowlock) (part_id, expires_at, expiry_id, message_id, lane, seq)
    select @part_id, iif(m.expires_at > @now, m.expires_at, @now),
           next value for rowq.message_seq, j.message_id,
           iif(@seq is null, null, iif(@is_front = 1, j.lane / 2 * 2, j.lane)), @seq + j.turn
    from (
        select i.message_id, i.lane,
               row_number() over (order by i.lane, i.place, i.message_id) as turn
        from @messages i
    ) j
    inner join rowq.message m with (forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
    where m.expires_at is not null
    option (loop join, force order, maxdop 1);
end
go

-- [file internal/offset_change.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalOffsetChange
    @from datetime2(6),
    @to datetime2(6),
    @windows_name nvarchar(128),
    @change datetime2(6) output
as
begin
-- routine   InternalOffsetChange
-- purpose   Return the first moment after @from, up to @to, when the clocks of a time zone were changed; null where they were not. Both moments are whole minutes at most two days apart.
    set nocount on;
    declare @low datetime2(6) = @from;
    declare @middle datetime2(6) = @to;
    declare @offset int = datediff(
        minute, @from, cast(@from at time zone N'UTC' at time zone @windows_name as datetime2(6))
    );
    set @change = null;

    -- Look at the end first, and then halve what lies between.
    while @change is null or datediff(minute, @low, @change) > 1
    begin
        if datediff(
            minute, @middle,
            cast(@middle at time zone N'UTC' at time zone @windows_name as datetime2(6))
        ) <> @offset
            set @change = @middle;
        else if @change is null
            return;
        else
            set @low = @middle;
        set @middle = dateadd(minute, datediff(minute, @low, @change) / 2, @low);
    end;
end
go

-- [file internal/open_days.sql]
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
      and l.lane = -3;
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

-- [file internal/open_lanes.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalOpenLanes
    @part_id int,
    @lane smallint
as
begin
-- routine   InternalOpenLanes
-- purpose   Let dequeue look into a lane and its front companion.
-- promise   P02
-- locks     the rows of the two lanes, passed over when locked
    set nocount on;
    -- Skip locked rows, so that no producer waits: their session is usually opening the lanes too.
    -- If the lanes stay closed, the next maintain finds the messages and opens them.
    update l
    set is_open = 1
    from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where l.part_id = @part_id
      and l.lane in (@lane / 2 * 2, @lane / 2 * 2 + 1)
      and l.is_open = 0;
end
go

-- [file internal/parse_cron.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalParseCron
    @cron nvarchar(max),
    @bits nvarchar(200) output
as
begin
-- routine   InternalParseCron
-- purpose   Turn a cron expression into a text of 0 and 1: 60 for minutes, 24 hours, 31 days, 12 months, 7 weekdays from Sunday on, one for a minute and an hour that are given, one for a day and a weekday that are both given.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @rest nvarchar(max);
    declare @number int = 1;
    declare @mark int;
    declare @field nvarchar(200);
    declare @name nvarchar(20);
    declare @low int;
    declare @high int;
    declare @words nvarchar(60);
    declare @part nvarchar(60);
    declare @stars nvarchar(5) = N'';
    declare @fault nvarchar(200);
    set @bits = N'';

    -- A dot at the end makes trailing blanks count.
    set @rest = case lower(@cron collate Latin1_General_100_BIN2) + N'.'
        when N'@hourly.' then N'0 * * * *'
        when N'@daily.' then N'0 0 * * *'
        when N'@midnight.' then N'0 0 * * *'
        when N'@weekly.' then N'0 0 * * 0'
        when N'@monthly.' then N'0 0 1 * *'
        when N'@yearly.' then N'0 0 1 1 *'
        when N'@annually.' then N'0 0 1 1 *'
        else @cron
    end;
    -- A character outside of ASCII may count as a blank, or as nothing, in some collations.
    if datalength(@cron) > 400
        or @rest collate Latin1_General_100_BIN2 like N'%[^ -~' + nchar(9) + N']%'
        set @rest = N'';
    -- Each field ends with one blank, so that there are as many blanks as fields.
    set @rest = concat(ltrim(rtrim(replace(@rest, nchar(9), N' '))), N' ');
    while charindex(N'  ', @rest) > 0
        set @rest = replace(@rest, N'  ', N' ');
    if datalength(@rest) - datalength(replace(@rest, N' ', N'')) <> 10
    begin
        set @fault = concat(
            N'cron must be five fields (minute, hour, day, month, weekday) or a word such as',
            N' @daily, got ', left(@cron, 60)
        );
        exec rowq.InternalRefuse @fault;
    end;

    while @number <= 5
    begin
        set @mark = charindex(N' ', @rest);
        set @field = left(@rest, @mark - 1);
        set @rest = substring(@rest, @mark + 1, 400);
        select @name = v.name, @low = v.low, @high = v.high, @words = v.words
        from (
            values
                (1, N'minute', 0, 59, null),
                (2, N'hour', 0, 23, null),
                (3, N'day', 1, 31, null),
                (4, N'month', 1, 12, N'jan feb mar apr may jun jul aug sep oct nov dec '),
                (5, N'weekday', 0, 7, N'sun mon tue wed thu fri sat ')
        ) v (number, name, low, high, words)
        where v.number = @number;
        exec rowq.InternalParseCronField @field, @name, @low, @high, @words, @part output;
        -- Sunday is 0 and 7.
        if @number = 5
            set @part = iif(right(@part, 1) = N'1', N'1', left(@part, 1)) + substring(@part, 2, 6);
        set @bits += @part;
        set @stars += iif(left(@field, 1) = N'*', N'1', N'0');
        set @number += 1;
    end;
    set @bits += iif(left(@stars, 2) = N'00', N'1', N'0');
    set @bits += iif(substring(@stars, 3, 1) = N'0' and right(@stars, 1) = N'0', N'1', N'0');
end
go

-- [file internal/parse_cron_field.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalParseCronField
    @field nvarchar(200),
    @name nvarchar(20),
    @low int,
    @high int,
    @words nvarchar(60),
    @bits nvarchar(60) output
as
begin
-- routine   InternalParseCronField
-- purpose   Turn a field of a cron expression into a text of 0 and 1, one for each value from @low on. @words are names of three letters for these values.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @rest nvarchar(201) = lower(@field collate Latin1_General_100_BIN2) + N',';
    declare @comma int;
    declare @slash int;
    declare @dash int;
    declare @item nvarchar(200);
    declare @range nvarchar(200);
    declare @first_word nvarchar(200);
    declare @last_word nvarchar(200);
    declare @step_word nvarchar(200);
    declare @first int;
    declare @last int;
    declare @step int;
    declare @fault nvarchar(400);
    set @bits = replicate(N'0', @high - @low + 1);

    while datalength(@rest) > 0
    begin
        set @comma = charindex(N',', @rest);
        set @item = left(@rest, @comma - 1);
        set @rest = substring(@rest, @comma + 1, 200);

        set @slash = charindex(N'/', @item);
        set @step_word = iif(@slash = 0, N'1', substring(@item, @slash + 1, 200));
        set @range = iif(@slash = 0, @item, left(@item, @slash - 1));
        if @range = N'*'
            set @range = concat(@low, N'-', @high);
        set @dash = charindex(N'-', @range);
        set @first_word = iif(@dash = 0, @range, left(@range, @dash - 1));
        -- A value with a step goes on to the end.
        set @last_word = case
            when @dash > 0 then substring(@range, @dash + 1, 200)
            when @slash > 0 then concat(@high, N'')
            else @first_word
        end;
        exec rowq.InternalParseCronValue @first_word, @low, @words, @first output;
        exec rowq.InternalParseCronValue @last_word, @low, @words, @last output;
        exec rowq.InternalParseCronValue @step_word, 0, null, @step output;
        if @first < @low or @last > @high or @first > @last or @step < 1
        begin
            set @fault = concat(
                N'the ', @name, N' of cron must be *, values from ', @low, N' to ', @high,
                N', ranges or steps of these, got ', left(@field, 60)
            );
            exec rowq.InternalRefuse @fault;
        end;

        while @first <= @last
        begin
            set @bits = stuff(@bits, @first - @low + 1, 1, N'1');
            set @first += @step;
        end;
    end;
end
go

-- [file internal/parse_cron_value.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalParseCronValue
    @word nvarchar(200),
    @low int,
    @words nvarchar(60),
    @value int output
as
begin
-- routine   InternalParseCronValue
-- purpose   Return the value of a number or a name in a cron expression, and -1 for anything else. @words are names of three letters for the values from @low on.
-- differs   no such helper elsewhere: part of internal_parse_cron_field
    set nocount on;
    declare @place int = charindex(@word collate Latin1_General_100_BIN2, @words);
    set @value = case
        when @word collate Latin1_General_100_BIN2 like N'[0-9]'
            or @word collate Latin1_General_100_BIN2 like N'[0-9][0-9]'
            then cast(@word as int)
        when @word collate Latin1_General_100_BIN2 like N'[a-z][a-z][a-z]' and @place % 4 = 1
            then @low + @place / 4
        else -1
    end;
end
go

-- [file internal/pass_group.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPassGroup
    @part_id int,
    @group_key varbinary(802),
    @group_limit int,
    @may_close bit,
    @message_id bigint output,
    @lane smallint output,
    @is_left bit output
as
begin
-- routine   InternalPassGroup
-- purpose   Pass one token of a group on to its next message, which is for the caller to make ready, or give it back; @is_left is 1 where nothing can be done now.
-- promise   P21 P22 P23 P24
-- locks     message_group and grouped rows, passing over locked ones
    set nocount on;
    declare @token_no smallint;
    declare @locked int = 0;
    declare @seen int;
    set @message_id = null;
    set @is_left = 0;

    -- Lock a token exclusively, so that nobody is coming or withdrawing a message. Only rowq's own
    -- transactions do that, which are short, because a producer that comes waits for this lock.
    if @may_close = 1
        select top (1) @token_no = t.token_no, @locked = 1
        from rowq.message_group t with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where t.part_id = @part_id
          and t.group_key = @group_key
        order by t.token_no desc
        option (maxdop 1, keepfixed plan);
    -- Producers that are coming share this lock. Two that take messages out of one group of one do
    -- not, so none is overtaken by the next one while it may come back by a rollback.
    if @token_no is null
        select top (1) @token_no = t.token_no
        from rowq.message_group t with (rowlock, updlock, readpast, readcommittedlock, forceseek)
        where t.part_id = @part_id
          and t.group_key = @group_key
        order by t.token_no desc
        option (maxdop 1, keepfixed plan);
    if @token_no is null
    begin
        set @is_left = 1;
        return;
    end;

    if @token_no > @group_limit
        and exists (
            select 1
            from rowq.message_group t with (rowlock, readpast, readcommittedlock, forceseek)
            where t.part_id = @part_id
              and t.group_key = @group_key
              and t.token_no <= @group_limit
        )
    begin
        -- A token beyond a limit that was lowered is given back: the lowest one that can be had.
        set @is_left = iif(@locked = 1, 0, 1);
        if @is_left = 1
            return;
        select top (1) @token_no = t.token_no
        from rowq.message_group t with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where t.part_id = @part_id
          and t.group_key = @group_key
          and t.token_no > @group_limit
        order by t.token_no
        option (maxdop 1, keepfixed plan);
        delete t
        from rowq.message_group t with (rowlock, forceseek)
        where t.part_id = @part_id
          and t.group_key = @group_key
          and t.token_no = @token_no
        option (maxdop 1, keepfixed plan);
        return;
    end;

    while 1 = 1
    begin
        -- What this passes over is not committed yet, or another session passes it on. It takes an
        -- update lock, which waits for a reader in the delete, because a row that a reader keeps
        -- locked must not be overtaken.
        select top (1) @message_id = g.message_id, @lane = g.lane
        from rowq.grouped g with (rowlock, updlock, readpast, readcommittedlock, forceseek)
        where g.part_id = @part_id
          and g.group_key = @group_key
        order by g.message_id
        option (maxdop 1, keepfixed plan);
        if @message_id is not null
        begin
            delete g
            from rowq.grouped g with (rowlock, forceseek)
            where g.part_id = @part_id
              and g.group_key = @group_key
              and g.message_id = @message_id
            option (maxdop 1, keepfixed plan);
            return;
        end;
        if @locked = 0
        begin
            set @is_left = 1;
            return;
        end;

        -- Nobody waits. Where all tokens are locked exclusively, nobody is coming either: give one
        -- back, if the look above has come after the locks. Else look once more.
        select @seen = count(*)
        from rowq.message_group t with (rowlock, readpast, readcommittedlock, forceseek)
        where t.part_id = @part_id
          and t.group_key = @group_key
        option (maxdop 1, keepfixed plan);
        if @seen <= @locked
            break;
        select @locked = count(*)
        from rowq.message_group t with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where t.part_id = @part_id
          and t.group_key = @group_key
        option (maxdop 1, keepfixed plan);
        if @locked < @seen
        begin
            set @is_left = 1;
            return;
        end;
    end;

    delete t
    from rowq.message_group t with (rowlock, forceseek)
    where t.part_id = @part_id
      and t.group_key = @group_key
      and t.token_no = @token_no
    option (maxdop 1, keepfixed plan);
end
go

-- [file internal/poll_result.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPollResult
    @queue_name nvarchar(max),
    @message_id bigint,
    @until datetime2(6),
    @pause_ms int output,
    @answer nvarchar(max) output
as
begin
-- routine   InternalPollResult
-- purpose   Look once for wait_for_result: return the row of get_result as JSON object, else the pause before the next look, in milliseconds; @pause_ms is passed in as the one before this look.
-- promise   P32
-- locks     as InternalReadResult
-- errors    RQ701 RQ711
    set nocount on;
    declare @part_id int;
    declare @result_seconds float;
    declare @is_last bit = iif(sysutcdatetime() >= @until, 1, 0);
    declare @left_ms bigint;
    declare @state nvarchar(20);
    declare @finished_at datetime2(6);
    declare @result nvarchar(max);
    declare @last_error nvarchar(4000);
    set @answer = null;

    if @message_id is null
        exec rowq.InternalRefuse N'message_id is missing';
    exec rowq.InternalRequireQueue
        @queue_name, @part_id output, @result_seconds = @result_seconds output;
    -- Most looks need no more than the result, which is found by its key.
    select @state = r.state, @finished_at = r.finished_at, @result = r.result,
           @last_error = r.last_error
    from rowq.result r with (index (result_pk), rowlock, readpast, readcommittedlock, forceseek)
    where r.part_id = @part_id
      and r.message_id = @message_id;

    -- The first look and the last one ask where the message is, too.
    if @state is null and (@pause_ms is null or @is_last = 1)
    begin
        exec rowq.InternalReadResult
            @part_id, @message_id, @state output, @finished_at output, @result output,
            @last_error output;
        if @state is null
            set @is_last = 1;
    end;
    if @is_last = 0 and @finished_at is null
    begin
        if @result_seconds = 0
            exec rowq.InternalRefuse N'the queue keeps no results: its result_seconds is 0';
        set @left_ms = datediff_big(millisecond, sysutcdatetime(), @until);
        set @pause_ms = iif(@pause_ms > 125, 250, coalesce(@pause_ms * 2, 20));
        if @pause_ms > @left_ms
            set @pause_ms = iif(@left_ms > 1, @left_ms, 1);
        return;
    end;

    set @pause_ms = null;
    -- "for json" would not take a result that is a number or a text as it is.
    if @state is not null
        set @answer = concat(
            N'{"message_id":', @message_id, N',"state":"', @state, N'","finished_at":',
            iif(
                @finished_at is null, N'null',
                concat(N'"', convert(nvarchar(30), @finished_at, 126), N'+00:00"')
            ),
            N',"result":', coalesce(@result, N'null'), N',"last_error":',
            iif(
                @last_error is null, N'null',
                concat(N'"', string_escape(@last_error, N'json'), N'"')
            ),
            N'}'
        );
end
go

-- [file internal/pop_expired.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPopExpired
    @part_id int,
    @archive_days int,
    @due rowq.message_list readonly,
    @popped_ids nvarchar(max) output
as
begin
-- routine   InternalPopExpired
-- purpose   End those messages that nobody holds, which are at lane and place where they are ready; @popped_ids are their ids, null where there is none. Call it in a transaction of rowq's own.
-- promise   P03 P36
-- locks     message rows; blocked, delayed, grouped and ready rows, and a token of each group, all
--           of them tried only; then as InternalFinish
    set nocount on;
    declare @may_close bit = 1;
    declare @found table (
        message_id bigint not null primary key,
        lane       smallint not null,
        seq        bigint not null
    );
    declare @held table (
        message_id bigint not null primary key,
        lane       smallint not null,
        seq        bigint not null,
        due_at     datetime2(6) null,
        group_key  varbinary(802) null
    );
    declare @groups table (
        group_key    varbinary(802) not null primary key,
        is_exclusive bit null
    );
    declare @taken rowq.message_list;
    set @popped_ids = null;

    -- Look with locks that do not last: most of the others are leased, and whoever reads their
    -- bodies must not wait for this transaction. top keeps each look an apply by key.
    insert into @found (message_id, lane, seq)
    select j.message_id, j.lane, j.place
    from @due j
    inner join rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
    outer apply (
        select top (1) x.message_id
        from rowq.ready x with (rowlock, readpast, readcommittedlock, forceseek)
        where x.part_id = @part_id
          and x.lane = j.lane
          and x.seq = j.place
          and x.message_id = j.message_id
    ) r
    outer apply (
        select top (1) x.message_id
        from rowq.delayed x with (rowlock, readpast, readcommittedlock, forceseek)
        where x.part_id = @part_id
          and x.due_at = m.due_at
          and x.message_id = j.message_id
    ) d
    outer apply (
        select top (1) x.message_id
        from rowq.blocked x with (rowlock, readpast, readcommittedlock, forceseek)
        where x.part_id = @part_id
          and x.message_id = j.message_id
    ) b
    outer apply (
        select top (1) x.message_id
        from rowq.grouped x with (rowlock, readpast, readcommittedlock, forceseek)
        where x.part_id = @part_id
          and x.group_key = convert(varbinary(802), m.group_key + N'.')
          and x.message_id = j.message_id
    ) g
    where coalesce(r.message_id, d.message_id, b.message_id, g.message_id) is not null
    option (loop join, force order, maxdop 1);
    if @@rowcount = 0
        return;

    -- The end of a message waits for a producer that has just named it as a predecessor, and
    -- maintain must not.
    insert into @held (message_id, lane, seq, due_at, group_key)
    select f.message_id, f.lane, f.seq, m.due_at, convert(varbinary(802), m.group_key + N'.')
    from @found f
    inner join rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on m.part_id = @part_id
       and m.message_id = f.message_id
    option (loop join, force order, maxdop 1);

    delete b
    output deleted.message_id, deleted.lane, 0, 0, 1
    into @taken (message_id, lane, place, attempt, is_tokenless)
    from @held h
    inner join rowq.blocked b with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on b.part_id = @part_id
       and b.message_id = h.message_id
    option (loop join, force order, maxdop 1);
    delete d
    output deleted.message_id, deleted.lane, 0, deleted.attempt,
           iif(deleted.group_key is null, 0, 1)
    into @taken (message_id, lane, place, attempt, is_tokenless)
    from @held h
    inner join rowq.delayed d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on d.part_id = @part_id
       and d.due_at = h.due_at
       and d.message_id = h.message_id
    option (loop join, force order, maxdop 1);
    delete r
    output deleted.message_id, deleted.lane, 0, deleted.attempt
    into @taken (message_id, lane, place, attempt)
    from @held h
    inner join rowq.ready r with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on r.part_id = @part_id
       and r.lane = h.lane
       and r.seq = h.seq
       and r.message_id = h.message_id
    option (loop join, force order, maxdop 1);

    -- Before a message is taken out of its group, hold a token, so that nobody passes over it
    -- meanwhile: exclusively where that can be had, because below the group may have to be closed,
    -- or joined by what has waited for a message. A group of which no token can be had is left to
    -- the next maintain.
    insert into @groups (group_key)
    select distinct h.group_key
    from @held h
    inner join rowq.grouped x with (rowlock, readpast, readcommittedlock, forceseek)
        on x.part_id = @part_id
       and x.group_key = h.group_key
       and x.message_id = h.message_id
    where h.group_key is not null
    option (loop join, force order, maxdop 1);
    if @@rowcount > 0
    begin
        update g
        set is_exclusive = 1
        from @groups g
        cross apply (
            select top (1) t.token_no
            from rowq.message_group t with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where t.part_id = @part_id
              and t.group_key = g.group_key
            order by t.token_no
        ) t
        option (loop join, force order, maxdop 1);
        update g
        set is_exclusive = 0
        from @groups g
        cross apply (
            select top (1) t.token_no
            from rowq.message_group t
                with (rowlock, updlock, readpast, readcommittedlock, forceseek)
            where t.part_id = @part_id
              and t.group_key = g.group_key
            order by t.token_no
        ) t
        where g.is_exclusive is null
        option (loop join, force order, maxdop 1);
        if @@rowcount > 0
            set @may_close = 0;
        delete x
        output deleted.message_id, deleted.lane, 0, 0, 1
        into @taken (message_id, lane, place, attempt, is_tokenless)
        from @held h
        inner join @groups g
            on g.group_key = h.group_key
           and g.is_exclusive is not null
        inner join rowq.grouped x with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            on x.part_id = @part_id
           and x.group_key = h.group_key
           and x.message_id = h.message_id
        option (loop join, force order, maxdop 1);
    end;

    if not exists (select 1 from @taken)
        return;
    exec rowq.InternalFinish @part_id, @archive_days, @taken, N'expired', @may_close;
    select @popped_ids = N'[' + string_agg(cast(t.message_id as nvarchar(max)), N',') + N']'
    from @taken t;
end
go

-- [file internal/pop_ready.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPopReady
    @part_id int,
    @limit int,
    @owns_transaction bit,
    @claim_id bigint output,
    @taken int output
as
begin
-- routine   InternalPopReady
-- purpose   Move up to @limit messages from the lanes to a claim, best lane first; @claim_id is a new number unless one is passed in.
-- promise   P05 P06 P13
-- locks     ready rows, passing over locked ones; as a guest the lane of guests, shared
    set nocount on;
    declare @left int = @limit;
    declare @lane smallint = -1;
    declare @next smallint;
    declare @callers_lane smallint;
    declare @floor bigint;
    declare @first bigint;
    declare @recent bigint;

    -- A guest holds lane -4 shared to the end of the caller's transaction, so that no floor moves
    -- up past rows that a rollback would put back. @callers_lane only takes what this read returns.
    if @owns_transaction = 0
        select @callers_lane = l.lane
        from rowq.lane l with (rowlock, repeatableread, forceseek)
        where l.part_id = @part_id
          and l.lane = -4;

    while @left > 0
    begin
        -- A front lane (an even number) is empty most of the time, so this statement looks into it
        -- and spares the delete below. A tail lane gets its delete at once, because a look would
        -- walk over the same ghosts first.
        set @next = null;
        select top (1) @next = l.lane, @floor = l.floor
        from rowq.lane l with (readuncommitted, forceseek)
        where l.part_id = @part_id
          and l.lane > @lane
          and l.is_open = 1
          and (
              l.lane % 2 = 1
              or exists (
                  select 1
                  from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
                  where r.part_id = @part_id
                    and r.lane = l.lane
                    and r.seq >= l.floor
              )
          )
        order by l.lane
        option (loop join, maxdop 1, keepfixed plan);
        if @next is null
            break;
        set @lane = @next;
        if @claim_id is null
            set @claim_id = next value for rowq.claim_seq;

        -- This is one seek to the floor and a walk along the key. It locks one row after the other
        -- and passes over rows that other sessions have locked. An update lock would not do: it is
        -- granted beside a reader's shared lock, and then the delete waits for the reader.
        with head as (
            select top (@left) r.part_id, r.lane, r.seq, r.message_id, r.attempt
            from rowq.ready r with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where r.part_id = @part_id
              and r.lane = @lane
              and r.seq >= @floor
            order by r.seq, r.message_id
        )
        delete from head
        output deleted.part_id, @claim_id, deleted.lane, deleted.seq, deleted.message_id,
               deleted.attempt + 1
        into rowq.leased (part_id, claim_id, lane, seq, message_id, attempt)
        option (maxdop 1, keepfixed plan);
        set @next = @@rowcount;
        if @next = 0
            continue;
        set @left -= @next;

        if @owns_transaction = 1 and @claim_id % 12 = 0
        begin
            -- Moving the floor costs a write, so only one dequeue in twelve does it. The floor
            -- moves up to the first message taken, but stays half a second behind now, because
            -- messages of the last moments may not be committed yet.
            set @recent = datediff_big(microsecond, '19700101', sysutcdatetime()) - 500000;
            select top (1) @first = l.seq
            from rowq.leased l with (forceseek)
            where l.part_id = @part_id
              and l.claim_id = @claim_id
              and l.lane = @lane
            order by l.seq;
            if @first > @recent
                set @first = @recent;
            if @first > @floor
                exec rowq.InternalMoveFloor @part_id, @lane, @floor, @first;
        end;
    end;
    set @taken = @limit - @left;
end
go

-- [file internal/promote.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPromote
    @part_id int,
    @limit int,
    @owns_transaction bit,
    @promoted int output
as
begin
-- routine   InternalPromote
-- purpose   Move up to @limit due messages to the tails of their lanes, or into their groups, earliest first.
-- promise   P11 P21
-- locks     delayed rows, passing over locked ones; new ready rows; the lane of guests; as
--           InternalPromoteGrouped
-- differs   in the caller's transaction those that are to join a group are left to others
    set nocount on;
    declare @callers_lane smallint;
    declare @floor bigint;
    declare @since datetime2(6);
    declare @now datetime2(6) = sysutcdatetime();
    declare @first datetime2(6);
    declare @to bigint;
    declare @due_at datetime2(6);
    declare @message_id bigint = 0;
    declare @lane smallint;
    declare @group_key varbinary(802);
    declare @has_token bit;
    declare @due rowq.message_list;
    declare @moved table (
        due_at     datetime2(6) not null,
        message_id bigint not null,
        lane       smallint not null,
        attempt    smallint not null,
        group_key  varbinary(802) null,
        primary key (due_at, message_id)
    );

    -- A guest holds lane -4 shared to the end of the caller's transaction, so that no floor moves
    -- up past rows that a rollback would put back. @callers_lane only takes what this read returns.
    if @owns_transaction = 0
        select @callers_lane = l.lane
        from rowq.lane l with (rowlock, repeatableread, forceseek)
        where l.part_id = @part_id
          and l.lane = -4;
    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -2;
    exec rowq.InternalFromMicroseconds @floor, @since output;

    with head as (
        select top (@limit) d.part_id, d.due_at, d.message_id, d.lane, d.attempt, d.group_key
        from rowq.delayed d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where d.part_id = @part_id
          and d.due_at >= @since
          and d.due_at <= @now
          and (@owns_transaction = 1 or d.group_key is null)
        order by d.due_at, d.message_id
    )
    delete from head
    output deleted.due_at, deleted.message_id, deleted.lane, deleted.attempt, deleted.group_key
    into @moved (due_at, message_id, lane, attempt, group_key)
    option (maxdop 1, keepfixed plan);
    set @promoted = @@rowcount;
    if @promoted = 0
        return;

    insert into @due (message_id, lane, place, attempt)
    select j.message_id, j.lane, datediff_big(microsecond, '19700101', j.due_at), j.attempt
    from @moved j
    where j.group_key is null;
    if @@rowcount < @promoted
    begin
        set @due_at = @since;
        while 1 = 1
        begin
            select top (1) @due_at = j.due_at, @message_id = j.message_id, @lane = j.lane,
                   @group_key = j.group_key
            from @moved j
            where j.due_at >= @due_at
              and (j.due_at > @due_at or j.message_id > @message_id)
              and j.group_key is not null
            order by j.due_at, j.message_id;
            if @@rowcount = 0
                break;
            exec rowq.InternalPromoteGrouped
                @part_id, @group_key, @message_id, @lane, @has_token output;
            if @has_token = 1
                insert into @due (message_id, lane, place, attempt)
                values (@message_id, @lane, datediff_big(microsecond, '19700101', @due_at), 0);
            if @has_token is null
                set @promoted -= 1;
        end;
    end;
    exec rowq.InternalPushReady @part_id, @due;

    -- Moving the floor costs a write, so only some calls do it. The floor moves up to the first
    -- message taken, but stays half a second behind now, because messages of the last moments may
    -- not be committed yet.
    if @owns_transaction = 1 and abs(cast(checksum(newid()) as bigint)) % 12 < @promoted
    begin
        select top (1) @first = j.due_at from @moved j order by j.due_at;
        if @first > dateadd(millisecond, -500, @now)
            set @first = dateadd(millisecond, -500, @now);
        set @to = datediff_big(microsecond, '19700101', @first);
        if @to > @floor
            exec rowq.InternalMoveFloor @part_id, -2, @floor, @to;
    end;
end
go

-- [file internal/promote_grouped.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPromoteGrouped
    @part_id int,
    @group_key varbinary(802),
    @message_id bigint,
    @lane smallint,
    @has_token bit output
as
begin
-- routine   InternalPromoteGrouped
-- purpose   Let a due message join its group: with a token it is for the caller to make ready, with 0 it waits there, and with null it is delayed by another half second.
-- promise   P11 P21 P22 P36
-- locks     as InternalTryJoinGroup; the message row, tried; new delayed and expiry
--           rows
-- differs   no such helper on PostgreSQL: part of internal_promote
    set nocount on;
    declare @due_at datetime2(6) = dateadd(millisecond, 500, sysutcdatetime());
    declare @delayed rowq.message_list;

    exec rowq.InternalTryJoinGroup
        @part_id, @group_key, @message_id, @lane, @has_token output;
    if @has_token is not null
        return;

    -- message.due_at finds a delayed message, so the two change together. Where a producer holds
    -- the row, because it names the message, both stay as they are.
    update m
    set due_at = @due_at
    from rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where m.part_id = @part_id
      and m.message_id = @message_id
    option (maxdop 1);
    if @@rowcount = 0
        select @due_at = m.due_at
        from rowq.message m with (forceseek)
        where m.part_id = @part_id
          and m.message_id = @message_id;
    insert into rowq.delayed with (rowlock) (part_id, due_at, message_id, lane, group_key)
    values (@part_id, @due_at, @message_id, @lane, @group_key);
    -- Without a note, who has just read its old time would not find it by the new one.
    insert into @delayed (message_id, lane, place, attempt) values (@message_id, @lane, 0, 0);
    exec rowq.InternalNoteExpiry @part_id, @delayed;
end
go

-- [file internal/purge_archive.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPurgeArchive
    @part_id int,
    @before datetime2(6),
    @limit int,
    @purged int output
as
begin
-- routine   InternalPurgeArchive
-- purpose   Delete up to @limit of a queue's archived messages that finished before @before.
-- promise   P19
-- locks     archive rows, passing over locked ones
    set nocount on;
    -- Lock exclusively from the start: an update lock would be granted beside a reader's lasting
    -- shared lock, and the delete would then wait for that reader.
    with head as (
        select top (@limit) a.part_id, a.finished_at, a.message_id
        from rowq.archived a
            with (index (archived_pk), rowlock, xlock, readpast, readcommittedlock, forceseek)
        where a.part_id = @part_id
          and a.finished_at < @before
        order by a.finished_at, a.message_id
    )
    delete from head
    option (maxdop 1);
    set @purged = @@rowcount;
end
go

-- [file internal/purge_history.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPurgeHistory
    @part_id int,
    @days int,
    @limit int,
    @owns_transaction bit,
    @purged int output
as
begin
-- routine   InternalPurgeHistory
-- purpose   Delete up to @limit attempts, 1000 at most, that ended more than @days ago; @purged is how many there were.
-- promise   P13 P37
-- locks     history rows, passing over locked ones; lane -10, tried
    set nocount on;
    declare @floor bigint;
    declare @is_open bit;
    declare @since datetime2(6);
    declare @before datetime2(6) = dateadd(day, -@days, sysutcdatetime());

    select @floor = l.floor, @is_open = l.is_open
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -10;
    exec rowq.InternalFromMicroseconds @floor, @since output;
    with head as (
        select top (@limit) h.part_id, h.ended_at, h.message_id, h.claim_id
        from rowq.history h
            with (index (history_pk), rowlock, xlock, readpast, readcommittedlock, forceseek)
        where h.part_id = @part_id
          and h.ended_at >= @since
          and h.ended_at < @before
        order by h.ended_at, h.message_id, h.claim_id
    )
    delete from head
    option (maxdop 1, keepfixed plan);
    set @purged = @@rowcount;

    -- From now on maintain keeps the floor. A queue that has purged no attempt yet needs none.
    if @purged > 0 and @is_open = 0 and @owns_transaction = 1
        update l
        set is_open = 1
        from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where l.part_id = @part_id
          and l.lane = -10;
end
go

-- [file internal/purge_results.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPurgeResults
    @part_id int,
    @seconds float,
    @limit int,
    @owns_transaction bit,
    @purged int output
as
begin
-- routine   InternalPurgeResults
-- purpose   Delete up to @limit results, 1000 at most, of messages that ended more than @seconds ago; @purged is how many there were.
-- promise   P13 P32
-- locks     result rows, passing over locked ones; lane -9, tried
    set nocount on;
    declare @floor bigint;
    declare @is_open bit;
    declare @since datetime2(6);
    declare @before datetime2(6) = dateadd(
        microsecond, -cast(round((@seconds - floor(@seconds)) * 1e6, 0) as int),
        dateadd(second, -cast(floor(@seconds) as int), sysutcdatetime())
    );
    declare @old table (message_id bigint not null primary key);
    set @purged = 0;

    select @floor = l.floor, @is_open = l.is_open
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -9;
    exec rowq.InternalFromMicroseconds @floor, @since output;
    -- Find rows with locks that do not last, then lock them by the other index, as whoever writes
    -- them does.
    insert into @old (message_id)
    select top (@limit) r.message_id
    from rowq.result r
        with (index (result_finished_ix), rowlock, readpast, readcommittedlock, forceseek)
    where r.part_id = @part_id
      and r.finished_at >= @since
      and r.finished_at < @before
    order by r.finished_at, r.message_id
    option (maxdop 1, keepfixed plan);
    if @@rowcount > 0
    begin
        delete r
        from @old o
        inner join rowq.result r
            with (index (result_pk), rowlock, xlock, readpast, readcommittedlock, forceseek)
            on r.part_id = @part_id
           and r.message_id = o.message_id
        where r.finished_at < @before
        option (loop join, force order, maxdop 1);
        set @purged = @@rowcount;
    end;

    -- From now on maintain keeps the floor.
    if @is_open = 0 and @owns_transaction = 1
        update l
        set is_open = 1
        from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where l.part_id = @part_id
          and l.lane = -9;
end
go

-- [file internal/purge_started.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPurgeStarted
    @part_id int,
    @seconds float,
    @limit int,
    @owns_transaction bit
as
begin
-- routine   InternalPurgeStarted
-- purpose   Delete up to @limit notes of deliveries that began more than @seconds ago.
-- promise   P13 P29
-- locks     started rows, passing over locked ones; lane -7, tried
    set nocount on;
    declare @floor bigint;
    declare @is_open bit;
    declare @since datetime2(6);
    declare @before datetime2(6) = dateadd(
        microsecond, -cast(round((@seconds - floor(@seconds)) * 1e6, 0) as int),
        dateadd(second, -cast(floor(@seconds) as int), sysutcdatetime())
    );

    select @floor = l.floor, @is_open = l.is_open
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -7;
    exec rowq.InternalFromMicroseconds @floor, @since output;
    with head as (
        select top (@limit) s.part_id, s.started_at, s.claim_id
        from rowq.started s with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where s.part_id = @part_id
          and s.started_at >= @since
          and s.started_at < @before
        order by s.started_at, s.claim_id
    )
    delete from head
    option (maxdop 1, keepfixed plan);

    -- From now on maintain keeps the floor.
    if @is_open = 0 and @owns_transaction = 1
        update l
        set is_open = 1
        from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where l.part_id = @part_id
          and l.lane = -7;
end
go

-- [file internal/purge_step.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPurgeStep
    @part_id int,
    @limit int,
    @owns_transaction bit,
    @stage smallint output,
    @from_key varbinary(802) output,
    @from bigint output,
    @removed int output
as
begin
-- routine   InternalPurgeStep
-- purpose   Delete up to @limit messages that wait for others (stage -2), in groups (-1), of one lane (0 to 19), of the delayed (20) or of the dead (21).
-- promise   P15
-- locks     blocked, grouped, ready, delayed or dead rows, passing over locked ones; a token of
--           each group, tried; then as InternalFinish
-- differs   no such helper elsewhere: part of purge_queue
    set nocount on;
    declare @since datetime2(6);
    declare @found table (
        group_key  varbinary(802) not null,
        message_id bigint not null,
        primary key (group_key, message_id)
    );
    declare @held table (group_key varbinary(802) not null primary key);
    declare @taken rowq.message_list;

    -- Go on from the last row and not from the start, where the index still has the rows deleted so
    -- far.
    if @stage = -1
    begin
        insert into @found (group_key, message_id)
        select top (@limit) g.group_key, g.message_id
        from rowq.grouped g with (rowlock, readpast, readcommittedlock, forceseek)
        where g.part_id = @part_id
          and g.group_key >= @from_key
          and (g.group_key > @from_key or g.message_id > @from)
        order by g.group_key, g.message_id
        option (maxdop 1, keepfixed plan);
        set @removed = @@rowcount;
        if @removed = 0
        begin
            set @stage = 0;
            set @from = 0;
            return;
        end;
        select top (1) @from_key = f.group_key, @from = f.message_id
        from @found f
        order by f.group_key desc, f.message_id desc;

        -- Hold a token of each group first, so that nobody passes over the messages meanwhile. A
        -- group of which none can be had is left alone.
        insert into @held (group_key)
        select k.group_key
        from (select distinct f.group_key from @found f) k
        cross apply (
            select top (1) t.token_no
            from rowq.message_group t
                with (rowlock, updlock, readpast, readcommittedlock, forceseek)
            where t.part_id = @part_id
              and t.group_key = k.group_key
            order by t.token_no
        ) t
        option (loop join, force order, maxdop 1);
        delete g
        output deleted.message_id, deleted.lane, 0, 0, 1
        into @taken (message_id, lane, place, attempt, is_tokenless)
        from @held h
        inner join @found f on f.group_key = h.group_key
        inner join rowq.grouped g with (rowlock, readpast, readcommittedlock, forceseek)
            on g.part_id = @part_id
           and g.group_key = f.group_key
           and g.message_id = f.message_id
        option (loop join, force order, maxdop 1);
        set @removed = @@rowcount;
        if @removed > 0
            exec rowq.InternalFinish @part_id, 0, @taken, N'cancelled', @owns_transaction;
        return;
    end;

    if @stage = -2
    begin
        with head as (
            select top (@limit) b.part_id, b.message_id, b.lane
            from rowq.blocked b with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where b.part_id = @part_id
              and b.message_id >= @from
            order by b.message_id
        )
        delete from head
        output deleted.message_id, deleted.lane, deleted.message_id, 0, 1
        into @taken (message_id, lane, place, attempt, is_tokenless)
        option (maxdop 1, keepfixed plan);
    end;
    else if @stage < 20
    begin
        with head as (
            select top (@limit) r.part_id, r.lane, r.seq, r.message_id, r.attempt
            from rowq.ready r with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where r.part_id = @part_id
              and r.lane = @stage
              and r.seq >= @from
            order by r.seq, r.message_id
        )
        delete from head
        output deleted.message_id, deleted.lane, deleted.seq, deleted.attempt
        into @taken (message_id, lane, place, attempt)
        option (maxdop 1, keepfixed plan);
    end;
    else if @stage = 20
    begin
        exec rowq.InternalFromMicroseconds @from, @since output;
        with head as (
            select top (@limit) d.part_id, d.due_at, d.message_id, d.lane, d.attempt, d.group_key
            from rowq.delayed d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where d.part_id = @part_id
              and d.due_at >= @since
            order by d.due_at, d.message_id
        )
        delete from head
        output deleted.message_id, deleted.lane,
               datediff_big(microsecond, '19700101', deleted.due_at), deleted.attempt,
               iif(deleted.group_key is null, 0, 1)
        into @taken (message_id, lane, place, attempt, is_tokenless)
        option (maxdop 1, keepfixed plan);
    end;
    else
    begin
        with head as (
            select top (@limit) d.part_id, d.message_id, d.lane, d.attempt, d.holds_group
            from rowq.dead d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where d.part_id = @part_id
              and d.message_id >= @from
            order by d.message_id
        )
        delete from head
        output deleted.message_id, deleted.lane, deleted.message_id, deleted.attempt,
               iif(deleted.holds_group = 1, 0, 1)
        into @taken (message_id, lane, place, attempt, is_tokenless)
        option (maxdop 1, keepfixed plan);
    end;

    select @removed = count(*), @from = coalesce(max(j.place), 0) from @taken j;
    if @removed = 0
        set @stage += 1;
    else
        exec rowq.InternalFinish @part_id, 0, @taken, N'cancelled', @owns_transaction;
end
go

-- [file internal/push_dead.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPushDead
    @part_id int,
    @messages rowq.message_list readonly,
    @error nvarchar(max),
    @may_close bit,
    @is_waiting bit = 1
as
begin
-- routine   InternalPushDead
-- purpose   Keep messages as dead with the last error; free their dedup keys, and their groups unless they are to wait; then what waits for them does as it asked. @is_waiting is that of InternalNoteError.
-- promise   P10 P12 P21 P27 P32
-- locks     new dead and result rows; message rows; as InternalCutTies and InternalFollowDeaths
    set nocount on;
    declare @noted int;
    declare @is_awaited bit = 0;
    declare @ids nvarchar(max);
    declare @has_ties bit;
    declare @holds bit = 0;
    declare @ties rowq.tie_list;

    -- Where the error is noted, the row is locked, and nobody comes to wait for the message any
    -- more. Where it is not, a producer is adding a message that waits.
    exec rowq.InternalNoteError @part_id, @messages, @error, @is_waiting, @noted output;
    select @is_awaited = 1
    from (select count(*) as messages from @messages) j
    where j.messages > @noted;
    insert into @ties (message_id, dedup_key, group_key, is_awaited)
    select m.message_id, m.dedup_key, m.group_key, iif(s.predecessor_id is null, null, 1)
    from @messages j
    inner join rowq.message m with (forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
    outer apply (
        select top (1) x.predecessor_id
        from rowq.successor x with (rowlock, readpast, readcommittedlock, forceseek)
        where x.part_id = @part_id
          and x.predecessor_id = m.message_id
    ) s
    where m.dedup_key is not null
       or m.group_key is not null
       or s.predecessor_id is not null
    option (loop join, force order, maxdop 1);
    set @has_ties = iif(@@rowcount > 0, 1, 0);
    if @has_ties = 1
        select @holds = iif(q.group_after_dead = N'hold', 1, 0)
        from rowq.queue q
        where q.part_id = @part_id;

    insert into rowq.dead with (rowlock) (part_id, message_id, lane, attempt, died_at, holds_group)
    select @part_id, j.message_id, j.lane, j.attempt, sysutcdatetime(),
           iif(@holds = 1 and t.group_key is not null, 1, null)
    from @messages j
    left join @ties t on t.message_id = j.message_id
    option (loop join, maxdop 1);
    exec rowq.InternalPushResult @part_id, @messages, N'dead', @error;

    if @has_ties = 1
    begin
        -- A dead message has not ended.
        select @is_awaited = 1 from @ties t where t.is_awaited = 1;
        update @ties
        set group_key = iif(@holds = 1, null, group_key),
            is_awaited = null
        where @holds = 1 or is_awaited = 1;
        exec rowq.InternalCutTies @part_id, @ties, @may_close;
    end;
    if @is_awaited = 1
    begin
        select @ids = N'[' + string_agg(cast(j.message_id as nvarchar(max)), N',') + N']'
        from @messages j;
        exec rowq.InternalFollowDeaths @part_id, @ids, null, @may_close;
    end;
end
go

-- [file internal/push_delayed.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPushDelayed
    @part_id int,
    @messages rowq.message_list readonly,
    @error nvarchar(max)
as
begin
-- routine   InternalPushDelayed
-- purpose   Let messages wait for their due_at; those that are due are ready at once.
-- promise   P10 P11 P36
-- locks     message rows; new delayed, ready and expiry rows
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @text nvarchar(4000) = left(@error collate Latin1_General_100_CI_AS_SC, 2000);
    declare @due rowq.message_list;

    update m
    set last_error = @text, due_at = j.due_at
    from @messages j
    inner join rowq.message m with (rowlock, forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
    option (loop join, force order, maxdop 1);

    insert into rowq.delayed with (rowlock) (part_id, due_at, message_id, lane, attempt)
    select @part_id, j.due_at, j.message_id, j.lane, j.attempt
    from @messages j
    where j.due_at > @now
    option (maxdop 1);
    -- One that is ready at once has another note after this one, which counts.
    exec rowq.InternalNoteExpiry @part_id, @messages;

    insert into @due (message_id, lane, place, attempt)
    select j.message_id, j.lane, j.place, j.attempt
    from @messages j
    where j.due_at <= @now;
    if @@rowcount > 0
        exec rowq.InternalPushReady @part_id, @due;
end
go

-- [file internal/push_history.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPushHistory
    @part_id int,
    @claim_id bigint,
    @worker_name nvarchar(400),
    @leased_at datetime2(6),
    @messages rowq.message_list readonly,
    @outcome nvarchar(20),
    @error nvarchar(max) = null
as
begin
-- routine   InternalPushHistory
-- purpose   Keep how attempts of a claim have ended: cancelled where is_cancelled says so, else as @outcome.
-- promise   P37
-- locks     new history rows
    set nocount on;
    -- The collation counts an emoji as one character.
    declare @text nvarchar(4000) = left(@error collate Latin1_General_100_CI_AS_SC, 2000);

    insert into rowq.history with (rowlock) (
        part_id, ended_at, message_id, claim_id, attempt, leased_at, outcome, worker_name, error
    )
    select @part_id, sysutcdatetime(), j.message_id, @claim_id, j.attempt, @leased_at,
           iif(j.is_cancelled = 1, N'cancelled', @outcome), @worker_name,
           iif(j.is_cancelled = 1, null, @text)
    from @messages j
    option (maxdop 1);
end
go

-- [file internal/push_ready.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPushReady
    @part_id int,
    @messages rowq.message_list readonly,
    @is_front bit = 0,
    @spent smallint = 0
as
begin
-- routine   InternalPushReady
-- purpose   Append messages to their lanes, or to the front of their priority, @spent attempts fewer.
-- promise   P02 P09 P14 P36
-- locks     new ready and expiry rows
    set nocount on;
    declare @seq bigint = datediff_big(microsecond, '19700101', sysutcdatetime());

    insert into rowq.ready with (rowlock) (part_id, lane, seq, message_id, attempt)
    select @part_id, iif(@is_front = 1, j.lane / 2 * 2, j.lane),
           @seq + row_number() over (order by j.lane, j.place, j.message_id), j.message_id,
           j.attempt - @spent
    from @messages j
    option (maxdop 1);
    exec rowq.InternalNoteExpiry @part_id, @messages, @seq, @is_front;
end
go

-- [file internal/push_result.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPushResult
    @part_id int,
    @messages rowq.message_list readonly,
    @state nvarchar(20),
    @error nvarchar(max) = null,
    @results nvarchar(max) = null,
    @message_ids nvarchar(max) = null
as
begin
-- routine   InternalPushResult
-- purpose   Keep how messages have ended, where the queue has result_seconds; @results go along @message_ids, among which they are, or are of the only one where that is null. Without @error a dead message has the error that stands beside its body.
-- promise   P32
-- locks     result rows
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    -- The collation counts an emoji as one character.
    declare @text nvarchar(4000) = left(@error collate Latin1_General_100_CI_AS_SC, 2000);
    declare @is_kept bit = 0;

    select @is_kept = 1
    from rowq.queue q
    where q.part_id = @part_id
      and q.result_seconds > 0;
    if @is_kept = 0
        return;

    if @results is not null
    begin
        if @message_ids is null
            select @message_ids = concat(N'[', j.message_id, N']') from @messages j;
        -- openjson reports a null as type 0 and a text, whose escapes it has read, as type 1.
        insert into rowq.result with (rowlock) (part_id, message_id, finished_at, state, result)
        select @part_id, j.message_id, @now, @state,
               case r.[type]
                   when 0 then null
                   when 1 then concat(N'"', string_escape(r.value, N'json'), N'"')
                   else r.value
               end
        from @messages j
        inner join (
            select cast(a.value as bigint) as message_id, min(cast(a.[key] as int)) as place
            from openjson(@message_ids) a
            group by cast(a.value as bigint)
        ) w on w.message_id = j.message_id
        inner join openjson(@results) r on cast(r.[key] as int) = w.place
        option (hash join, maxdop 1);
        return;
    end;

    -- A dead message that is cancelled or purged has its row already.
    update r
    set finished_at = @now,
        state       = @state
    from @messages j
    inner join rowq.result r with (index (result_pk), rowlock, forceseek)
        on r.part_id = @part_id
       and r.message_id = j.message_id
    option (loop join, force order, maxdop 1);
    insert into rowq.result with (rowlock) (part_id, message_id, finished_at, state, last_error)
    select @part_id, j.message_id, @now, @state, coalesce(@text, m.last_error)
    from @messages j
    left join rowq.message m with (forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
       and @state = N'dead'
       and @text is null
    where not exists (
        select 1
        from rowq.result r with (index (result_pk), forceseek)
        where r.part_id = @part_id
          and r.message_id = j.message_id
    )
    option (loop join, force order, maxdop 1);
end
go

-- [file internal/read_result.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalReadResult
    @part_id int,
    @message_id bigint,
    @state nvarchar(20) output,
    @finished_at datetime2(6) output,
    @result nvarchar(max) output,
    @last_error nvarchar(4000) output
as
begin
-- routine   InternalReadResult
-- purpose   Return how a message has ended, and its result; of one that has not ended its state; nulls when rowq does not know it.
-- promise   P32
-- locks     rows, shared while they are read, passing over locked ones; the result row, tried
-- differs   no such helper on PostgreSQL: part of get_result
    set nocount on;
    declare @enqueued_at datetime2(6);
    declare @due_at datetime2(6);
    declare @group_key nvarchar(400);
    declare @own_error nvarchar(4000);
    declare @place nvarchar(20);
    declare @lane smallint;
    declare @attempt smallint;
    declare @claim_id bigint;
    declare @worker_name nvarchar(400);
    declare @lease_until datetime2(6);
    declare @ended_at datetime2(6);
    declare @waits_for bigint;
    declare @progress nvarchar(4000);
    set @state = null;
    set @finished_at = null;
    set @result = null;
    set @last_error = null;

    select @enqueued_at = m.enqueued_at, @due_at = m.due_at, @group_key = m.group_key,
           @own_error = m.last_error
    from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
    where m.part_id = @part_id
      and m.message_id = @message_id;
    if @enqueued_at is not null
        exec rowq.InternalLocateMessages
            @part_id, @message_id, @enqueued_at, @group_key, @due_at output, @place output,
            @lane output, @attempt output, @claim_id output, @worker_name output,
            @lease_until output, @ended_at output, @waits_for output, @progress output;
    else
    begin
        -- A row that another session has locked is error 1222 (nowait): it must not look like one
        -- that is gone. Without xact_abort that error ends no transaction.
        set xact_abort off;
        begin try
            select @place = N'leased'
            from rowq.message m with (rowlock, readcommittedlock, nowait, forceseek)
            where m.part_id = @part_id
              and m.message_id = @message_id;
        end try
        begin catch
            if error_number() <> 1222
                throw;
            set @place = N'leased';
        end catch;
    end;
    if @place in (N'ready', N'delayed', N'blocked', N'leased')
    begin
        set @state = @place;
        return;
    end;

    -- Look for the result last, because it is committed together with the end that was seen. It may
    -- be in another session's hands, as the message may be above.
    set xact_abort off;
    begin try
        select @state = r.state, @finished_at = r.finished_at, @result = r.result,
               @last_error = r.last_error
        from rowq.result r with (index (result_pk), rowlock, readcommittedlock, nowait, forceseek)
        where r.part_id = @part_id
          and r.message_id = @message_id;
    end try
    begin catch
        if error_number() <> 1222
            throw;
        set @state = N'leased';
    end catch;
    if @state is not null
        return;
    if @place is not null
    begin
        set @state = @place;
        set @finished_at = @ended_at;
        set @last_error = iif(@place = N'dead', @own_error, null);
        return;
    end;
    select @state = a.state, @finished_at = a.finished_at
    from rowq.archived a with (index (archived_message_ix), rowlock, readpast, readcommittedlock)
    where a.part_id = @part_id
      and a.message_id = @message_id;
end
go

-- [file internal/reap.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalReap
    @part_id int,
    @max_attempts int,
    @history_days int,
    @limit int,
    @owns_transaction bit,
    @reaped int output,
    @died int output
as
begin
-- routine   InternalReap
-- purpose   Take messages back from expired claims to the front of their lanes, until @limit is passed.
-- promise   P03 P09 P34 P37
-- locks     expired claim rows, passing over locked ones; message rows, tried; as InternalPushDead;
--           for cancelled messages as InternalFinish; new history rows
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @claim_id bigint;
    declare @worker_name nvarchar(400);
    declare @leased_at datetime2(6);
    declare @error nvarchar(500);
    declare @has_cancels bit;
    declare @locked int;
    declare @count int = 0;
    declare @expired table (claim_id bigint not null primary key);
    declare @taken rowq.message_list;
    declare @ended rowq.message_list;
    declare @alive rowq.message_list;
    declare @worn rowq.message_list;
    set @reaped = 0;
    set @died = 0;

    select @claim_id = l.floor - 1
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -1;
    -- Find expired claims with locks that do not last, so that live claims are left alone, then
    -- lock them one by one.
    insert into @expired (claim_id)
    select top (@limit) c.claim_id
    from rowq.claim c with (rowlock, readpast, readcommittedlock, forceseek)
    where c.part_id = @part_id
      and c.claim_id > @claim_id
      and c.lease_until <= @now
    order by c.claim_id
    option (maxdop 1, keepfixed plan);

    while @reaped + @died + @count < @limit
    begin
        set @claim_id = null;
        select top (1) @claim_id = e.claim_id from @expired e order by e.claim_id;
        if @claim_id is null
            break;
        delete from @expired where claim_id = @claim_id;

        -- Pass over a claim whose heartbeat or finish came first: its lease is longer by then, or
        -- its row is locked or gone.
        set @worker_name = null;
        select @worker_name = c.worker_name, @has_cancels = c.has_cancels,
               @leased_at = c.leased_at
        from rowq.claim c with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where c.part_id = @part_id
          and c.claim_id = @claim_id
          and c.lease_until <= @now;
        if @@rowcount = 0
            continue;

        if @has_cancels = 1
        begin
            -- Leave the claim alone while a producer is adding a message that waits for one of the
            -- cancelled ones, because the end of a message would wait for that transaction.
            select @locked = count(*)
            from rowq.leased l with (forceseek)
            left join rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                on m.part_id = @part_id
               and m.message_id = l.message_id
            where l.part_id = @part_id
              and l.claim_id = @claim_id
              and l.is_cancelled = 1
              and m.message_id is null
            option (loop join, force order, maxdop 1, keepfixed plan);
            if @locked > 0
                continue;
        end;

        delete l
        output deleted.message_id, deleted.lane, deleted.seq, deleted.attempt,
               deleted.is_cancelled
        into @taken (message_id, lane, place, attempt, is_cancelled)
        from rowq.leased l with (rowlock, forceseek)
        where l.part_id = @part_id
          and l.claim_id = @claim_id
        option (maxdop 1, keepfixed plan);
        exec rowq.InternalDeleteEmptyClaim @part_id, @claim_id;
        set @error = iif(
            @worker_name is null, N'lease expired', concat(N'lease expired: ', @worker_name)
        );
        if @history_days > 0
            exec rowq.InternalPushHistory
                @part_id, @claim_id, @worker_name, @leased_at, @taken, N'lease_expired', @error;
        if @has_cancels = 1
        begin
            delete j
            output deleted.message_id, deleted.lane, deleted.place, deleted.attempt
            into @ended (message_id, lane, place, attempt)
            from @taken j
            where j.is_cancelled = 1;
            set @count += @@rowcount;
            exec rowq.InternalEndCancelled @part_id, @ended, @owns_transaction;
            delete from @ended;
        end;

        insert into @alive (message_id, lane, place, attempt)
        select j.message_id, j.lane, j.place, j.attempt
        from @taken j
        inner join rowq.message m with (forceseek)
            on m.part_id = @part_id
           and m.message_id = j.message_id
           and j.attempt < coalesce(m.max_attempts, @max_attempts)
        option (loop join, force order, maxdop 1);
        insert into @worn (message_id, lane, place, attempt)
        select j.message_id, j.lane, j.place, j.attempt
        from @taken j
        where not exists (select 1 from @alive a where a.message_id = j.message_id);

        select @reaped += count(*) from @alive;
        select @died += count(*) from @worn;
        if exists (select 1 from @alive)
        begin
            exec rowq.InternalPushReady @part_id, @alive, @is_front = 1;
            exec rowq.InternalNoteError @part_id, @alive, @error, @is_waiting = 0;
        end;
        if exists (select 1 from @worn)
            exec rowq.InternalPushDead
                @part_id, @worn, @error, @owns_transaction, @is_waiting = 0;
        delete from @taken;
        delete from @alive;
        delete from @worn;
    end;
end
go

-- [file internal/recheck.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRecheck
    @part_id int,
    @limit int,
    @owns_transaction bit,
    @solved int output
as
begin
-- routine   InternalRecheck
-- purpose   Look again at up to @limit tokens and messages that were left; @solved is for how many that was enough.
-- promise   P22 P24 P26 P27
-- locks     recheck rows, passing over locked ones; as InternalPassGroup, InternalWidenGroup,
--           InternalLetGo, InternalFreeSuccessors and InternalRecheckDeath
-- differs   in the caller's transaction tokens are passed on, and nothing else
    set nocount on;
    declare @floor bigint;
    declare @due_at datetime2(6);
    declare @now datetime2(6) = sysutcdatetime();
    declare @recheck_id bigint;
    declare @waiting_id bigint;
    declare @predecessor_id bigint;
    declare @group_key varbinary(802);
    declare @is_hint bit;
    declare @group_limit int;
    declare @ids nvarchar(max);
    declare @again nvarchar(max);
    declare @message_id bigint;
    declare @lane smallint;
    declare @is_left bit;
    declare @is_done bit;
    declare @notes table (
        due_at         datetime2(6) not null,
        recheck_id     bigint not null,
        message_id     bigint null,
        predecessor_id bigint null,
        group_key      varbinary(802) null,
        is_hint        bit not null,
        primary key (due_at, recheck_id)
    );
    declare @ready rowq.message_list;
    set @solved = 0;

    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -6;
    exec rowq.InternalFromMicroseconds @floor, @due_at output;
    insert into @notes (due_at, recheck_id, message_id, predecessor_id, group_key, is_hint)
    select top (@limit) r.due_at, r.recheck_id, r.message_id, r.predecessor_id, r.group_key,
           r.is_hint
    from rowq.recheck r with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where r.part_id = @part_id
      and r.due_at >= @due_at
      and r.due_at <= @now
    order by r.due_at, r.recheck_id
    option (maxdop 1, keepfixed plan);
    if @@rowcount = 0
        return;
    select @group_limit = q.group_limit from rowq.queue q where q.part_id = @part_id;

    while 1 = 1
    begin
        select top (1) @due_at = n.due_at, @recheck_id = n.recheck_id,
               @waiting_id = n.message_id, @predecessor_id = n.predecessor_id,
               @group_key = n.group_key, @is_hint = n.is_hint
        from @notes n
        order by n.due_at, n.recheck_id;
        if @@rowcount = 0
            break;
        delete from @notes where due_at = @due_at and recheck_id = @recheck_id;

        set @is_done = 0;
        if @group_key is not null and @is_hint = 0
        begin
            exec rowq.InternalPassGroup
                @part_id, @group_key, @group_limit, @owns_transaction, @message_id output,
                @lane output, @is_left output;
            set @is_done = iif(@is_left = 1, 0, 1);
            if @message_id is not null
                insert into @ready (message_id, lane, place, attempt)
                values (@message_id, @lane, @solved, 0);
        end;
        else if @owns_transaction = 0
            continue;
        else if @group_key is not null
            exec rowq.InternalWidenGroup @part_id, @group_limit, @group_key, @is_done output;
        else if @waiting_id is not null
        begin
            set @ids = concat(N'[', @waiting_id, N']');
            exec rowq.InternalLetGo @part_id, @ids, null, @may_join = 1, @again = @again output;
            set @is_done = iif(@again is null, 1, 0);
        end;
        else if @is_hint = 1
            exec rowq.InternalRecheckDeath
                @part_id, @predecessor_id, @may_join = 1, @is_done = @is_done output;
        else
        begin
            exec rowq.InternalFreeSuccessors @part_id, @predecessor_id, @may_join = 1;
            set @is_done = 1;
        end;

        -- A row that cannot be solved stays as it is: a producer that is idle in its transaction
        -- must not make every look write.
        if @is_done = 1
        begin
            delete r
            from rowq.recheck r with (rowlock, forceseek)
            where r.part_id = @part_id
              and r.due_at = @due_at
              and r.recheck_id = @recheck_id
            option (maxdop 1, keepfixed plan);
            set @solved += 1;
        end;
    end;
    if exists (select 1 from @ready)
        exec rowq.InternalPushReady @part_id, @ready;
end
go

-- [file internal/recheck_death.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRecheckDeath
    @part_id int,
    @message_id bigint,
    @may_join bit,
    @is_done bit output
as
begin
-- routine   InternalRecheckDeath
-- purpose   Look again what waits for a dead message; @is_done is 0 where another session is at work on it.
-- promise   P27
-- locks     the message row, tried only; as InternalFollowDeaths
    set nocount on;
    declare @locked_id bigint;
    declare @ids nvarchar(max) = concat(N'[', @message_id, N']');
    declare @state nvarchar(20);
    declare @predecessor_id bigint;
    declare @rest_ids nvarchar(max);

    select @locked_id = m.message_id
    from rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where m.part_id = @part_id
      and m.message_id = @message_id;
    if @locked_id is null
    begin
        -- It is gone, or a producer is adding a message that waits for it, or it is being reset.
        exec rowq.InternalAwaitPredecessor
            @part_id, @ids, null, @state output, @predecessor_id output, @rest_ids output;
        set @is_done = iif(@state = N'free', 1, 0);
        return;
    end;

    -- One that was reset meanwhile is waited for as before.
    set @is_done = 1;
    if exists (
        select 1
        from rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
        where d.part_id = @part_id
          and d.message_id = @message_id
    )
        exec rowq.InternalFollowDeaths @part_id, @ids, null, @may_join;
end
go

-- [file internal/refuse.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRefuse
    @fault nvarchar(max)
as
begin
-- routine   InternalRefuse
-- purpose   Raise the error for an invalid argument.
-- promise   P15
-- errors    RQ711
-- differs   PostgreSQL raises with an expression
    set nocount on;
    declare @text nvarchar(2048) = concat(N'RQ711 invalid_argument: ', left(@fault, 400));
    -- throw reads %% as %, so each % of the text is doubled.
    set @text = replace(@text, N'%', N'%%');
    throw 52711, @text, 1;
end
go

-- [file internal/refuse_not_empty.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRefuseNotEmpty
    @part_id int,
    @queue_name nvarchar(max)
as
begin
-- routine   InternalRefuseNotEmpty
-- purpose   Raise an error if a queue still has messages or an archive.
-- promise   P15
-- locks     the first row of each kind, shared while it is read; waits for a session that holds it
-- errors    RQ704
-- differs   no such helper elsewhere: part of drop_queue
    set nocount on;
    declare @text nvarchar(2048) = concat(
        N'RQ704 queue_not_empty: ', left(@queue_name, 200), N'; force drops all of it'
    );
    -- throw reads %% as %, so each % of the text is doubled.
    set @text = replace(@text, N'%', N'%%');
    if exists (select 1 from rowq.ready r with (readcommittedlock) where r.part_id = @part_id)
        or exists (select 1 from rowq.delayed d with (readcommittedlock) where d.part_id = @part_id)
        or exists (select 1 from rowq.claim c with (readcommittedlock) where c.part_id = @part_id)
        or exists (select 1 from rowq.dead d with (readcommittedlock) where d.part_id = @part_id)
        or exists (select 1 from rowq.grouped g with (readcommittedlock) where g.part_id = @part_id)
        or exists (select 1 from rowq.blocked b with (readcommittedlock) where b.part_id = @part_id)
        or exists (
            select 1 from rowq.finished f with (readcommittedlock) where f.part_id = @part_id
        )
        or exists (
            select 1 from rowq.archived a with (readcommittedlock) where a.part_id = @part_id
        )
        throw 52704, @text, 1;
end
go

-- [file internal/refuse_predecessors.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRefusePredecessors
    @messages nvarchar(max),
    @first_id bigint
as
begin
-- routine   InternalRefusePredecessors
-- purpose   Refuse a batch, all of whose messages are newer than @first_id, for bad lists of predecessors.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @fault nvarchar(200);

    -- A number that is no id counts as bad, and as 0 else: for a null in an aggregate the engine
    -- sends a warning, which some drivers take for the result.
    select top (1) @fault = concat(
        case
            when p.[key] = N'predecessor_positions'
                then N'predecessor_positions must be a flat list of places'
                    + N' before the message''s own'
            when h.members > 10000 or h.bad > 0
                then N'predecessor_ids must be a flat list of at most 10000 ids, no null'
            else N'predecessor_ids must name messages that are there'
        end,
        N' (message ', cast(e.[key] as int) + 1, N')'
    )
    from openjson(@messages) e
    cross apply openjson(e.value) p
    cross apply (
        select count(*) as members,
               sum(iif(i.[type] = 2 and try_cast(i.value as bigint) is not null, 0, 1)) as bad,
               min(coalesce(try_cast(i.value as bigint), 0)) as lowest,
               max(coalesce(try_cast(i.value as bigint), 0)) as newest
        from openjson(
            iif(
                p.[key] in (N'predecessor_ids', N'predecessor_positions') and p.[type] = 4,
                p.value, N'[]'
            )
        ) i
    ) h
    where h.members > 10000
       or h.bad > 0
       or p.[key] = N'predecessor_ids' and h.newest >= @first_id
       or p.[key] = N'predecessor_positions'
           and (h.lowest < 1 or h.newest > cast(e.[key] as int))
    order by cast(e.[key] as int);
    if @fault is not null
        exec rowq.InternalRefuse @fault;
end
go

-- [file internal/refuse_queue.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRefuseQueue
    @queue_name nvarchar(max)
as
begin
-- routine   InternalRefuseQueue
-- purpose   Raise the error for a queue name that is missing or unknown.
-- promise   P15
-- errors    RQ701 RQ711
    set nocount on;
    declare @text nvarchar(2048) = concat(N'RQ701 queue_not_found: ', left(@queue_name, 200));
    if @queue_name is null
        exec rowq.InternalRefuse N'queue_name is missing';
    -- throw reads %% as %, so each % of the text is doubled.
    set @text = replace(@text, N'%', N'%%');
    throw 52701, @text, 1;
end
go

-- [file internal/require_queue.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRequireQueue
    @queue_name nvarchar(max),
    @part_id int output,
    @lease_seconds int = null output,
    @max_attempts int = null output,
    @archive_days int = null output,
    @is_paused bit = null output,
    @max_body_length int = null output,
    @group_limit int = null output,
    @result_seconds float = null output,
    @history_days int = null output
as
begin
-- routine   InternalRequireQueue
-- purpose   Return the part and the settings of a queue; raise an error if it does not exist.
-- promise   P15
-- locks     the row of the queue, shared, while it is read; none with row versions
-- errors    RQ701 RQ711
    set nocount on;
    declare @queue_key varbinary(402);
    set @part_id = null;

    -- A longer text is no name of a queue, but the conversion below would cut it off, and it could
    -- look like one.
    if datalength(@queue_name) <= 400
    begin
        set @queue_key = convert(varbinary(402), @queue_name + N'.');
        select @part_id = q.part_id, @lease_seconds = q.lease_seconds,
               @max_attempts = q.max_attempts, @archive_days = q.archive_days,
               @is_paused = iif(q.paused_at is null, 0, 1), @max_body_length = q.max_body_length,
               @group_limit = q.group_limit, @result_seconds = q.result_seconds,
               @history_days = q.history_days
        from rowq.queue q
        where q.queue_key = @queue_key;
    end;
    if @part_id is null
        exec rowq.InternalRefuseQueue @queue_name;
end
go

-- [file internal/require_schedule.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRequireSchedule
    @part_id int,
    @schedule_name nvarchar(max),
    @schedule_key varbinary(402) output
as
begin
-- routine   InternalRequireSchedule
-- purpose   Return the key of a schedule and hold it to the end of the transaction; raise an error if there is none.
-- promise   P15
-- locks     the schedule row
-- errors    RQ702 RQ711
    set nocount on;
    declare @key varbinary(402);
    declare @text nvarchar(2048) = concat(
        N'RQ702 schedule_not_found: ', left(@schedule_name, 100)
    );
    set @schedule_key = null;
    if @schedule_name is null
        exec rowq.InternalRefuse N'schedule_name is missing';

    -- A longer text is no name of a schedule, but the conversion below would cut it off, and it
    -- could look like one.
    if datalength(@schedule_name) <= 400
    begin
        set @key = convert(varbinary(402), @schedule_name + N'.');
        select @schedule_key = s.schedule_key
        from rowq.schedule s with (rowlock, xlock, readcommittedlock, forceseek)
        where s.part_id = @part_id
          and s.schedule_key = @key
        option (maxdop 1);
    end;
    if @schedule_key is null
    begin
        -- throw reads %% as %, so each % of the text is doubled.
        set @text = replace(@text, N'%', N'%%');
        throw 52702, @text, 1;
    end;
end
go

-- [file internal/rescan_floors.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRescanFloors
    @part_id int
as
begin
-- routine   InternalRescanFloors
-- purpose   Look for the first live row of every lane from its very start, and put the floors right.
-- promise   P13 P14
-- locks     rows of lanes, passing over locked ones
-- differs   PostgreSQL looks from a safe mark, and from the start once a minute
    set nocount on;
    -- Times are in microseconds. A look that takes longer than @short_walk has walked over ghosts.
    -- After one longer than @long_walk the lane rests @duty times as long, but never longer than
    -- @longest_pause. A look into all lanes is short up to @short_look.
    declare @short_walk bigint = 300;
    declare @long_walk bigint = 20000;
    declare @duty int = 50;
    declare @longest_pause bigint = 3600000000;
    declare @short_look bigint = 1000;
    declare @last smallint = -1;
    declare @lane smallint = -11;
    declare @next smallint;
    declare @is_open bit;
    declare @floor bigint;
    declare @first bigint;
    declare @latest bigint;
    declare @worth_it bigint;
    declare @took bigint;
    declare @pause int;
    declare @started datetime2(6);

    -- This is one look into all lanes of ready, which finds nothing to do most of the time. Only if
    -- it does, or if it took so long that a lane must rest, they are taken one by one below.
    set @started = sysutcdatetime();
    set @latest = datediff_big(microsecond, '19700101', @started) - 500000;
    select top (1) @last = 19
    from rowq.lane l with (readuncommitted, forceseek)
    outer apply (
        select top (1) r.seq
        from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
        where r.part_id = @part_id
          and r.lane = l.lane
        order by r.seq, r.message_id
    ) f
    where l.part_id = @part_id
      and l.lane >= 0
      and l.check_after <= @started
      and (
          l.is_open = 0 and f.seq is not null
          or f.seq < l.floor
          or @latest < l.floor
          or l.is_open = 1
              and @latest > l.floor + 60000000
              and coalesce(f.seq, @latest) > l.floor + 60000000
      )
    option (loop join, maxdop 1, keepfixed plan);
    if datediff_big(microsecond, @started, sysutcdatetime()) > @short_look
        set @last = 19;

    while 1 = 1
    begin
        set @next = null;
        select top (1) @next = l.lane, @floor = l.floor, @is_open = l.is_open
        from rowq.lane l with (readuncommitted, forceseek)
        where l.part_id = @part_id
          and l.lane between @lane + 1 and @last
          and (l.lane >= -3 or l.lane <= -6 and l.is_open = 1)
          and l.check_after <= sysutcdatetime()
        order by l.lane
        option (maxdop 1, keepfixed plan);
        if @next is null
            break;
        set @lane = @next;

        set @started = sysutcdatetime();
        exec rowq.InternalFirstKey @part_id, @lane, @first output;
        set @took = datediff_big(microsecond, @started, sysutcdatetime());

        if @lane >= 0 and @first is not null and @is_open = 0
            -- The lane has messages but is closed: its row was locked when a producer wanted to
            -- open it, or the session that opened it rolled back.
            exec rowq.InternalOpenLanes @part_id, @lane;
        if @lane = -1
        begin
            -- If there is no row, take the next number for the first, because all later rows are
            -- above it.
            if @first is null and @took > @short_walk
                set @first = next value for rowq.claim_seq;
            set @first = coalesce(@first, @floor);
            set @worth_it = 400;
        end;
        else
        begin
            -- The floor stays half a second behind now, because messages of the last moments may
            -- not be committed yet.
            set @latest = datediff_big(microsecond, '19700101', @started) - 500000;
            if @first is null or @first > @latest
                set @first = @latest;
            set @worth_it = 60000000;
        end;
        if @took > @short_walk
            set @worth_it = 0;
        if @first < @floor or @first > @floor + @worth_it and (@is_open = 1 or @lane < 0)
            exec rowq.InternalMoveFloor @part_id, @lane, @floor, @first;

        -- After a long walk over ghosts, rest for fifty times as long as it took.
        if @took > @long_walk
        begin
            set @pause = iif(@took * @duty > @longest_pause, @longest_pause, @took * @duty)
                / 1000;
            update l
            set check_after = dateadd(millisecond, @pause, sysutcdatetime())
            from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where l.part_id = @part_id
              and l.lane = @lane;
        end;
    end;
end
go

-- [file internal/reserve_dedup_key.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalReserveDedupKey
    @part_id int,
    @dedup_key nvarchar(max),
    @message_id bigint,
    @holder bigint output
as
begin
-- routine   InternalReserveDedupKey
-- purpose   Reserve a dedup key for a message, or return the unfinished message that has it.
-- promise   P12
-- locks     the dedup row; waits for a session that is adding or freeing it
    set nocount on;
    declare @key varbinary(802) = convert(varbinary(802), @dedup_key + N'.');
    set @holder = null;

    while 1 = 1
    begin
        select @holder = d.message_id
        from rowq.dedup d with (rowlock, readcommittedlock, forceseek)
        where d.part_id = @part_id
          and d.dedup_key = @key;
        if @holder is not null
            break;

        -- If another session has added the key meanwhile, this inserts no row and raises no error
        -- (ignore_dup_key). Then look again, because the key may be gone already.
        insert into rowq.dedup with (rowlock) (part_id, dedup_key, message_id)
        values (@part_id, @key, @message_id);
        if @@rowcount = 1
            break;
    end;
end
go

-- [file internal/room.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRoom
    @part_id int,
    @max_leased int,
    @rate_limit int,
    @rate_seconds float,
    @wanted int,
    @room int output
as
begin
-- routine   InternalRoom
-- purpose   Return how many of the wanted messages a queue's limits leave room for at this moment.
-- promise   P28 P29
-- locks     none with row versions; else rows, shared while they are read, waited for a moment
    set nocount on;
    -- Without row versions these reads wait for a session that is ending a lease. If that takes
    -- longer, error 1222 ends the dequeue, which gives nothing then.
    set lock_timeout 100;
    declare @first bigint;
    declare @count int = 0;
    declare @since datetime2(6);
    set @room = @wanted;

    if @max_leased > 0
    begin
        -- Begin at the very first claim and not at the floor, because one that was committed late
        -- counts, too. What another session is just ending counts until that is committed.
        select top (1) @first = c.claim_id
        from rowq.claim c with (forceseek)
        where c.part_id = @part_id
        order by c.claim_id
        option (maxdop 1, keepfixed plan);
        if @first is not null
            select @count = count(*)
            from (
                select top (@max_leased) 1 as one
                from rowq.leased l with (forceseek)
                where l.part_id = @part_id
                  and l.claim_id >= @first
            ) h
            option (maxdop 1, keepfixed plan);
        set @room = iif(@max_leased - @count < @room, @max_leased - @count, @room);
    end;

    if @rate_limit > 0
    begin
        set @since = dateadd(
            microsecond, -cast(round((@rate_seconds - floor(@rate_seconds)) * 1e6, 0) as int),
            dateadd(second, -cast(floor(@rate_seconds) as int), sysutcdatetime())
        );
        select @count = coalesce(sum(s.messages), 0)
        from rowq.started s with (forceseek)
        where s.part_id = @part_id
          and s.started_at > @since
        option (maxdop 1, keepfixed plan);
        set @room = iif(@rate_limit - @count < @room, @rate_limit - @count, @room);
    end;
    if @room < 0
        set @room = 0;
end
go

-- [file internal/run_due.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRunDue
    @part_id int,
    @schedule_key varbinary(402),
    @owns_transaction bit
as
begin
-- routine   InternalRunDue
-- purpose   Add the messages of a schedule's due ticks, a hundred at most, and move it on.
-- promise   P30 P31
-- locks     as InternalSendTick, waited for 20 ms; the caller holds the schedule row
-- errors    RQ711
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @late datetime2(6) = dateadd(second, -60, @now);
    declare @cron nvarchar(200);
    declare @bits nvarchar(200);
    declare @interval_seconds float;
    declare @time_zone nvarchar(128);
    declare @windows_name nvarchar(128);
    declare @missed nvarchar(20);
    declare @starts_at datetime2(6);
    declare @ends_at datetime2(6);
    declare @tick datetime2(6);
    declare @after datetime2(6);
    declare @ticks int = 0;
    declare @message_id bigint;
    declare @outcome nvarchar(20);
    declare @last_message_id bigint;
    declare @error nvarchar(200);

    -- A guest does not wait here, and an end of such a wait would doom the caller's transaction.
    if @owns_transaction = 1
        set lock_timeout 20;
    select @cron = s.cron, @interval_seconds = s.interval_seconds, @time_zone = s.time_zone,
           @missed = s.missed, @starts_at = s.starts_at, @ends_at = s.ends_at,
           @tick = s.next_run_at
    from rowq.schedule s with (forceseek)
    where s.part_id = @part_id
      and s.schedule_key = @schedule_key
    option (maxdop 1);
    exec rowq.InternalWindowsZone @time_zone, @windows_name output;
    if @cron is not null
        exec rowq.InternalParseCron @cron, @bits output;

    while @tick <= @now and @ticks < 100
    begin
        set @after = @late;
        if @tick >= @late or @missed <> N'skip'
        begin
            exec rowq.InternalSendTick
                @part_id, @schedule_key, @tick, @message_id output, @outcome output;
            set @error = null;
            if @outcome = N'enqueued'
                set @last_message_id = @message_id;
            else
                set @error = concat(
                    N'message ', @message_id, N' of an earlier tick has not ended'
                );
            set @after = iif(@tick < @late and @missed = N'once', @now, @tick);
            set @ticks += 1;
        end;
        exec rowq.InternalNextTick
            @bits, @interval_seconds, @windows_name, @starts_at, @ends_at, @after, @tick output;
    end;

    update s
    set next_run_at     = @tick,
        last_run_at     = iif(@last_message_id is null, s.last_run_at, @now),
        last_message_id = coalesce(@last_message_id, s.last_message_id),
        last_error      = @error
    from rowq.schedule s with (rowlock, forceseek)
    where s.part_id = @part_id
      and s.schedule_key = @schedule_key
    option (maxdop 1);
end
go

-- [file internal/run_schedules.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRunSchedules
    @part_id int
as
begin
-- routine   InternalRunSchedules
-- purpose   Run the schedules of a queue that are due and that no other session is running.
-- promise   P30 P31
-- locks     the part, shared; due schedule rows, tried only; as InternalRunDue
-- commits   each schedule by itself where the caller has no transaction; never the caller's
-- errors    RQ701
-- differs   in the caller's transaction schedules with a group, or without overlap, are left to
--           others
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @now datetime2(6) = sysutcdatetime();
    declare @begun int;
    declare @queue_name nvarchar(200);
    declare @schedule_key varbinary(402) = 0x;
    declare @next_key varbinary(402);
    declare @is_due bit;
    declare @is_late bit = 0;
    declare @error nvarchar(4000);

    while 1 = 1
    begin
        -- With xact_abort on, a refusal would doom the caller's transaction.
        if @owns_transaction = 0
            set xact_abort off;
        set @error = null;
        set @next_key = null;
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            -- Look first, because the lock below would stay on rows that are not due, too. A guest
            -- must not wait for others, as it holds the part until its caller's transaction ends,
            -- and a call of its own waits for a producer once.
            select top (1) @next_key = s.schedule_key
            from rowq.schedule s with (rowlock, readpast, readcommittedlock, forceseek)
            where s.part_id = @part_id
              and s.schedule_key > @schedule_key
              and s.next_run_at <= @now
              and (
                  @owns_transaction = 1 and @is_late = 0
                  or s.overlap = 1 and s.group_key is null
              )
            order by s.schedule_key
            option (maxdop 1, keepfixed plan);
            if @next_key is null
                break;
            set @schedule_key = @next_key;

            if @owns_transaction = 1
                begin transaction;
            set @queue_name = N'';
            select @queue_name = q.queue_name from rowq.queue q where q.part_id = @part_id;
            exec rowq.InternalLockPartShared @part_id, @queue_name;
            set @is_due = 0;
            select @is_due = 1
            from rowq.schedule s with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where s.part_id = @part_id
              and s.schedule_key = @schedule_key
              and s.next_run_at <= @now
              and (
                  @owns_transaction = 1 and @is_late = 0
                  or s.overlap = 1 and s.group_key is null
              )
            option (maxdop 1, keepfixed plan);
            if @is_due = 1
            begin
                exec rowq.InternalCheckTick @part_id, @schedule_key;

                -- Now the call writes. If the client gives up half-way, the engine takes back the
                -- whole transaction (xact_abort), so that nobody can commit one half of a call.
                set xact_abort on;
                exec rowq.InternalRunDue @part_id, @schedule_key, @owns_transaction;
            end;

            if @owns_transaction = 1
                commit transaction;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;
            if @next_key is null
                or error_number() = 52701
                or @owns_transaction = 0 and xact_state() <> 1
                throw;

            if error_number() = 1222
                set @is_late = 1;
            -- What comes of locks (1205, 1222) or of the server's state is tried again by the next
            -- call. What would be refused again is noted, and its tick is given up.
            if error_number() <> 1222 and error_severity() between 14 and 16
                set @error = error_message();
        end catch;
        if @error is not null
            exec rowq.InternalGiveUpTick @part_id, @schedule_key, @error;
    end;
end
go

-- [file internal/send_tick.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalSendTick
    @part_id int,
    @schedule_key varbinary(402),
    @tick datetime2(6),
    @message_id bigint output,
    @outcome nvarchar(20) output
as
begin
-- routine   InternalSendTick
-- purpose   Add the message of a schedule to its queue; the outcome is enqueue's.
-- promise   P12 P21 P22 P30
-- locks     as InternalStore
-- differs   elsewhere it calls enqueue, whose rows would come out of maintain here
    set nocount on;
    declare @group_limit int;
    declare @schedule_name nvarchar(200);
    declare @message_type nvarchar(400);
    declare @headers nvarchar(max);
    declare @tick_headers nvarchar(max);
    declare @priority int;
    declare @group_key nvarchar(400);
    declare @max_attempts int;
    declare @dedup_key nvarchar(400);
    declare @body nvarchar(max);
    declare @body_binary varbinary(max);

    select @group_limit = q.group_limit, @schedule_name = s.schedule_name,
           @message_type = s.message_type, @headers = s.headers, @priority = s.priority,
           @group_key = s.group_key, @max_attempts = s.max_attempts,
           @dedup_key = iif(s.overlap = 1, null, N'schedule:' + s.schedule_name),
           @body = s.body, @body_binary = s.body_binary
    from rowq.schedule s with (forceseek)
    inner join rowq.queue q on q.part_id = s.part_id
    where s.part_id = @part_id
      and s.schedule_key = @schedule_key
    option (loop join, maxdop 1);
    exec rowq.InternalTickHeaders @headers, @schedule_name, @tick, @tick_headers output;
    exec rowq.InternalStore
        @part_id, @group_limit, @body, @body_binary, @message_type, @tick_headers, @priority,
        null, null, @dedup_key, @max_attempts, @group_key, null, @message_id output,
        @outcome output;
end
go

-- [file internal/store.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalStore
    @part_id int,
    @group_limit int,
    @body nvarchar(max),
    @body_binary varbinary(max),
    @message_type nvarchar(max),
    @headers nvarchar(max),
    @priority int,
    @delay_seconds float,
    @run_at datetime2(6),
    @dedup_key nvarchar(max),
    @max_attempts int,
    @group_key nvarchar(max),
    @expire_seconds float,
    @message_id bigint output,
    @outcome nvarchar(20) output
as
begin
-- routine   InternalStore
-- purpose   Keep a message without predecessors that has been checked; the outcome is enqueue's.
-- promise   P01 P11 P12 P20 P21 P22 P36
-- locks     new rows; with a dedup key and with a group key, waits as enqueue does
-- differs   elsewhere enqueue does it, whose rows would come out of the caller here
    set nocount on;
    declare @now datetime2(6);
    declare @due_at datetime2(6);
    declare @expires_at datetime2(6);
    declare @lane smallint = @priority * 2 + 1;
    declare @is_open bit;
    declare @group_bytes varbinary(802) = convert(varbinary(802), @group_key + N'.');
    declare @has_token bit = 1;
    declare @holder bigint;

    exec rowq.InternalNextMessageId @message_id output;
    if @dedup_key is not null
        exec rowq.InternalReserveDedupKey @part_id, @dedup_key, @message_id, @holder output;
    if @holder is not null
    begin
        set @message_id = @holder;
        set @outcome = N'duplicate';
        return;
    end;

    set @now = sysutcdatetime();
    set @due_at = coalesce(
        @run_at,
        dateadd(
            microsecond, cast(round((@delay_seconds - floor(@delay_seconds)) * 1e6, 0) as int),
            dateadd(second, cast(floor(@delay_seconds) as int), @now)
        )
    );
    if @due_at <= @now
        set @due_at = null;
    if @group_key is not null and @due_at is null
    begin
        exec rowq.InternalEnterGroup @part_id, @group_bytes, @group_limit, @has_token output;
        -- That may have waited, and the place of a ready message is the moment of now.
        set @now = sysutcdatetime();
    end;
    set @expires_at = dateadd(
        microsecond, cast(round((@expire_seconds - floor(@expire_seconds)) * 1e6, 0) as int),
        dateadd(second, cast(floor(@expire_seconds) as int), @now)
    );
    insert into rowq.message with (rowlock) (
        part_id, message_id, max_attempts, enqueued_at, due_at, expires_at, message_type,
        dedup_key, headers, body, body_binary, group_key
    )
    values (
        @part_id, @message_id, @max_attempts, @now, @due_at, @expires_at, @message_type,
        @dedup_key, @headers, @body, @body_binary, @group_key
    );

    select @is_open = l.is_open
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = @lane;
    if @is_open = 0
        exec rowq.InternalOpenLanes @part_id, @lane;
    if @due_at is not null
        insert into rowq.delayed with (rowlock) (part_id, due_at, message_id, lane, group_key)
        values (@part_id, @due_at, @message_id, @lane, @group_bytes);
    else if @has_token = 1
        insert into rowq.ready with (rowlock) (part_id, lane, seq, message_id)
        values (@part_id, @lane, datediff_big(microsecond, '19700101', @now), @message_id);
    else
        insert into rowq.grouped with (rowlock) (part_id, group_key, message_id, lane)
        values (@part_id, @group_bytes, @message_id, @lane);
    -- Where the message is not ready, maintain finds it by other keys.
    if @expires_at is not null
        insert into rowq.expiry with (rowlock)
            (part_id, expires_at, expiry_id, message_id, lane, seq)
        values (
            @part_id, @expires_at, @message_id, @message_id, @lane,
            datediff_big(microsecond, '19700101', @now)
        );
    set @outcome = N'enqueued';
end
go

-- [file internal/store_batch.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalStoreBatch
    @part_id int,
    @group_limit int,
    @messages nvarchar(max),
    @has_waiting bit,
    @now datetime2(6),
    @parsed rowq.parsed_list readonly,
    @new rowq.new_list readonly
as
begin
-- routine   InternalStoreBatch
-- purpose   Keep the messages of a batch that have their numbers and keys; those whose key another one holds are left out.
-- promise   P01 P05 P11 P20 P21 P25 P26 P27 P36
-- locks     new rows; with group keys, waits as enqueue does, in the order of the keys; as
--           InternalBlockBatch
-- differs   elsewhere it parses the batch, too, which here must be done before the call writes
    set nocount on;
    declare @lane smallint = -1;
    declare @waiting table (
        message_id bigint not null primary key
    );
    declare @joining rowq.message_list;

    insert into rowq.message with (rowlock) (
        part_id, message_id, max_attempts, enqueued_at, due_at, expires_at, message_type,
        dedup_key, headers, body, body_binary, group_key
    )
    select @part_id, n.message_id, p.max_attempts, dateadd(microsecond, n.position, @now),
           n.due_at,
           dateadd(
               microsecond,
               n.position
                   + cast(round((p.expire_seconds - floor(p.expire_seconds)) * 1e6, 0) as int),
               dateadd(second, cast(floor(p.expire_seconds) as int), @now)
           ),
           p.message_type, p.dedup_key, h.headers, t.body, b.body_binary, p.group_key
    from openjson(@messages) e
    inner join @new n on n.position = cast(e.[key] as int) + 1
    inner join @parsed p on p.position = n.position
    outer apply (
        select top (1) j.value as headers
        from openjson(e.value) j
        where j.[key] = N'headers'
          and j.[type] <> 0
    ) h
    outer apply (
        select top (1) j.value as body
        from openjson(e.value) j
        where j.[key] = N'body'
          and j.[type] <> 0
    ) t
    outer apply openjson(e.value) with (body_binary varbinary(max) '$.body_base64') b
    where n.holder = n.message_id
    option (loop join, force order, maxdop 1);

    while @lane is not null
    begin
        select @lane = min(n.lane)
        from @new n
        inner join rowq.lane l with (readuncommitted, forceseek)
            on l.part_id = @part_id
           and l.lane = n.lane
           and l.is_open = 0
        where n.lane > @lane
        option (loop join, force order, maxdop 1);
        if @lane is not null
            exec rowq.InternalOpenLanes @part_id, @lane;
    end;

    if @has_waiting = 1
    begin
        exec rowq.InternalBlockBatch @part_id, @messages, @new;
        insert into @waiting (message_id)
        select n.message_id
        from @new n
        where n.holder = n.message_id
          and (
              exists (
                  select 1
                  from rowq.blocked b with (forceseek)
                  where b.part_id = @part_id
                    and b.message_id = n.message_id
              )
              or exists (
                  select 1
                  from rowq.dead d with (forceseek)
                  where d.part_id = @part_id
                    and d.message_id = n.message_id
              )
          )
        option (loop join, maxdop 1);
    end;

    insert into rowq.ready with (rowlock) (part_id, lane, seq, message_id)
    select @part_id, n.lane, datediff_big(microsecond, '19700101', @now) + n.position,
           n.message_id
    from @new n
    where n.holder = n.message_id
      and n.due_at is null
      and n.group_key is null
      and not exists (select 1 from @waiting w where w.message_id = n.message_id)
    option (maxdop 1);
    insert into rowq.delayed with (rowlock) (part_id, due_at, message_id, lane, group_key)
    select @part_id, n.due_at, n.message_id, n.lane, n.group_key
    from @new n
    where n.holder = n.message_id
      and n.due_at is not null
      and not exists (select 1 from @waiting w where w.message_id = n.message_id)
    option (maxdop 1);
    if exists (select 1 from @new n where n.group_key is not null)
    begin
        insert into @joining (message_id, lane, place, attempt, group_key)
        select n.message_id, n.lane,
               datediff_big(microsecond, '19700101', @now) + n.position, 0, n.group_key
        from @new n
        where n.holder = n.message_id
          and n.due_at is null
          and n.group_key is not null
          and not exists (select 1 from @waiting w where w.message_id = n.message_id);
        exec rowq.InternalJoinGroups @part_id, @group_limit, @joining;
    end;

    -- Where a message is not ready, maintain finds it by other keys.
    if exists (select 1 from @parsed p where p.expire_seconds is not null)
        insert into rowq.expiry with (rowlock)
            (part_id, expires_at, expiry_id, message_id, lane, seq)
        select @part_id, m.expires_at, n.message_id, n.message_id, n.lane,
               datediff_big(microsecond, '19700101', @now) + n.position
        from @new n
        inner join rowq.message m with (forceseek)
            on m.part_id = @part_id
           and m.message_id = n.message_id
        where n.holder = n.message_id
          and m.expires_at is not null
        option (loop join, force order, maxdop 1);
end
go

-- [file internal/tick_headers.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalTickHeaders
    @headers nvarchar(max),
    @schedule_name nvarchar(200),
    @tick datetime2(6),
    @tick_headers nvarchar(max) output
as
begin
-- routine   InternalTickHeaders
-- purpose   Return the headers of a message of a schedule: its own, the schedule's name and the tick.
    set nocount on;
    set @tick_headers = json_modify(
        json_modify(coalesce(@headers, N'{}'), N'$.schedule', @schedule_name),
        N'$.tick', stuff(convert(nvarchar(26), @tick, 121), 11, 1, N'T') + N'Z'
    );
end
go

-- [file internal/topic_fault.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalTopicFault
    @name nvarchar(40),
    @topic nvarchar(max),
    @is_pattern bit,
    @fault nvarchar(200) output
as
begin
-- routine   InternalTopicFault
-- purpose   Return what is wrong with a topic or a pattern; null means nothing.
-- promise   P15
-- differs   elsewhere a regular expression says it
    set nocount on;
    -- Two dots between words give each word its own, so that every * becomes a letter at once.
    declare @words nvarchar(max) = concat(
        N'.', replace(@topic collate Latin1_General_100_BIN2, N'.', N'..'), N'.'
    );
    if @is_pattern = 1
    begin
        set @words = replace(@words collate Latin1_General_100_BIN2, N'.*.', N'.x.');
        if right(@words, 3) collate Latin1_General_100_BIN2 = N'.#.'
            set @words = stuff(@words, len(@words) - 1, 1, N'x');
    end;

    -- A dot at the end makes trailing blanks count. The collation counts an emoji as one character.
    set @fault = case
        when @topic is null
            then concat(@name, N' is missing')
        when len((@topic + N'.') collate Latin1_General_100_CI_AS_SC) > 201
            then concat(@name, N' is longer than 200 characters')
        when @words collate Latin1_General_100_BIN2 not like N'%[^A-Za-z0-9_.-]%'
            and @words collate Latin1_General_100_BIN2 not like N'%...%'
            and @words collate Latin1_General_100_BIN2 <> N'..'
            then null
        when @is_pattern = 1
            then concat(
                @name, N' must be words of letters, digits, _, - or *, dots between, # last'
            )
        else concat(@name, N' must be words of letters, digits, _, -, with dots between')
    end;
end
go

-- [file internal/trim_claim.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalTrimClaim
    @part_id int,
    @claim_id bigint,
    @most_bytes bigint
as
begin
-- routine   InternalTrimClaim
-- purpose   Give back those messages of a new claim that go beyond @most_bytes; the first one stays.
-- promise   P02 P05
-- locks     rows of leased; new ready rows
    set nocount on;
    declare @lane smallint;
    declare @seq bigint;
    declare @message_id bigint;
    declare @rest rowq.message_list;

    -- Three bytes of a binary body become four letters of base64, which take eight bytes here. So
    -- each byte counts as three.
    select top (1) @lane = s.lane, @seq = s.seq, @message_id = s.message_id
    from (
        select l.lane, l.seq, l.message_id,
               row_number() over (order by l.lane, l.seq, l.message_id) as place,
               sum(
                   coalesce(datalength(m.body), 0) + coalesce(datalength(m.body_binary), 0) * 3
                   + coalesce(datalength(m.headers), 0) + coalesce(datalength(m.last_error), 0)
                   + 1000
               ) over (order by l.lane, l.seq, l.message_id rows unbounded preceding) as bytes
        from rowq.leased l with (forceseek)
        inner join rowq.message m with (forceseek)
            on m.part_id = @part_id
           and m.message_id = l.message_id
        where l.part_id = @part_id
          and l.claim_id = @claim_id
    ) s
    where s.place > 1
      and s.bytes > @most_bytes
    order by s.lane, s.seq, s.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    if @lane is null
        return;

    delete l
    output deleted.message_id, deleted.lane, deleted.seq, deleted.attempt
    into @rest (message_id, lane, place, attempt)
    from rowq.leased l with (rowlock, forceseek)
    where l.part_id = @part_id
      and l.claim_id = @claim_id
      and (
          l.lane > @lane
          or l.lane = @lane and l.seq > @seq
          or l.lane = @lane and l.seq = @seq and l.message_id >= @message_id
      )
    option (maxdop 1, keepfixed plan);
    exec rowq.InternalPushReady @part_id, @rest, @is_front = 1, @spent = 1;
end
go

-- [file internal/try_enter_group.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalTryEnterGroup
    @part_id int,
    @group_key varbinary(802),
    @group_limit int,
    @has_token bit output
as
begin
-- routine   InternalTryEnterGroup
-- purpose   Take a token of a group: @has_token is 0 where it is full, and null where a producer is opening it, or the limit was lowered meanwhile. Call it in a transaction of rowq's own.
-- promise   P22
-- locks     a new message_group row
-- differs   elsewhere it waits for a producer for a moment, and holds the tokens of a full group
    set nocount on;
    -- The insert below waits for a session that is closing the group at this moment, and for a
    -- producer who has opened it after the look. If either takes longer, error 1222 ends this
    -- transaction, which starts again and sees by then what is going on.
    set lock_timeout 100;
    declare @tokens int;
    declare @token_no int;
    declare @seen int;
    set @has_token = null;

    select @tokens = count(*), @token_no = min(iif(t.token_no = t.place, 32767, t.place))
    from (
        select x.token_no, row_number() over (order by x.token_no) as place
        from rowq.message_group x with (rowlock, readpast, readcommittedlock, forceseek)
        where x.part_id = @part_id
          and x.group_key = @group_key
    ) t
    option (maxdop 1, keepfixed plan);
    if @tokens >= @group_limit
    begin
        set @has_token = 0;
        return;
    end;

    -- A dirty read sees the token of an open producer, too, which the look has passed over.
    select @seen = count(*)
    from rowq.message_group x with (readuncommitted, forceseek)
    where x.part_id = @part_id
      and x.group_key = @group_key
    option (maxdop 1, keepfixed plan);
    if @seen > @tokens
        return;

    set @token_no = iif(@token_no < 32767, @token_no, @tokens + 1);
    insert into rowq.message_group with (rowlock) (part_id, group_key, token_no)
    values (@part_id, @group_key, @token_no);
    if @@rowcount = 0
        return;

    -- That may have waited, so what counts is the limit that is read after it. Any leaves room for
    -- one.
    if @group_limit > 1
        and @group_limit > (select q.group_limit from rowq.queue q where q.part_id = @part_id)
        delete from rowq.message_group with (rowlock)
        where part_id = @part_id
          and group_key = @group_key
          and token_no = @token_no;
    else
        set @has_token = 1;
end
go

-- [file internal/try_join_group.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalTryJoinGroup
    @part_id int,
    @group_key varbinary(802),
    @message_id bigint,
    @lane smallint,
    @has_token bit output
as
begin
-- routine   InternalTryJoinGroup
-- purpose   Let a message join its group: with a token it is for the caller to make ready, with 0 it waits there, and null is undecided. Call it in a transaction of rowq's own.
-- promise   P21 P22
-- locks     as InternalTryEnterGroup; a message_group row, tried; a new grouped row
-- differs   no such helper elsewhere: there whoever enters a group that is full holds its tokens
    set nocount on;
    declare @group_limit int;
    declare @token_no smallint;

    select @group_limit = q.group_limit from rowq.queue q where q.part_id = @part_id;
    exec rowq.InternalTryEnterGroup @part_id, @group_key, @group_limit, @has_token output;
    if @has_token = 1 or @has_token is null
        return;

    -- Hold a token to the end of the transaction: whoever would give the last one back knows by
    -- this that a message is coming.
    select top (1) @token_no = t.token_no
    from rowq.message_group t with (rowlock, updlock, readpast, readcommittedlock, forceseek)
    where t.part_id = @part_id
      and t.group_key = @group_key
    order by t.token_no
    option (maxdop 1, keepfixed plan);
    if @token_no is null
        set @has_token = null;
    else
        insert into rowq.grouped with (rowlock) (part_id, group_key, message_id, lane)
        values (@part_id, @group_key, @message_id, @lane);
end
go

-- [file internal/try_unblock.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalTryUnblock
    @part_id int,
    @message_id bigint,
    @ended_id bigint,
    @may_join bit,
    @state nvarchar(20) output,
    @lane smallint output,
    @dead_id bigint output
as
begin
-- routine   InternalTryUnblock
-- purpose   Look again what a blocked message waits for: again, waiting, moved, gone, ready (in @lane), or failed with @dead_id. The last two are for the caller to put where they belong.
-- promise   P25 P26 P27
-- locks     the blocked row and the message row, tried only; as InternalAwaitPredecessor and
--           InternalTryJoinGroup; new successor and delayed rows
-- differs   PostgreSQL does it in internal_unblock
    set nocount on;
    declare @locked_id bigint;
    declare @predecessor_id bigint;
    declare @due_at datetime2(6);
    declare @on_dead nvarchar(20);
    declare @group_key varbinary(802);
    declare @rest_ids nvarchar(max);
    declare @ids nvarchar(max);
    declare @is_blocked bit;
    declare @has_token bit;
    set @state = N'free';
    set @dead_id = null;

    select @locked_id = b.message_id, @lane = b.lane, @predecessor_id = b.predecessor_id,
           @due_at = b.due_at, @on_dead = b.on_dead, @group_key = b.group_key,
           @rest_ids = b.rest_ids
    from rowq.blocked b with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where b.part_id = @part_id
      and b.message_id = @message_id;
    if @locked_id is null
    begin
        -- It is gone, or somebody is cancelling it.
        exec rowq.InternalIsBlocked @part_id, @message_id, @is_blocked output;
        set @state = iif(@is_blocked = 1, N'again', N'gone');
        return;
    end;

    if @predecessor_id = @ended_id
        set @predecessor_id = null;
    set @ids = N'[' + nullif(
        concat(
            @predecessor_id, iif(@predecessor_id is null or @rest_ids is null, N'', N','),
            substring(@rest_ids, 2, len(@rest_ids) - 2)
        ),
        N''
    ) + N']';
    if @ids is not null
        exec rowq.InternalAwaitPredecessor
            @part_id, @ids, @on_dead, @state output, @predecessor_id output, @rest_ids output;

    if @state = N'waiting'
    begin
        insert into rowq.successor with (rowlock) (part_id, predecessor_id, message_id, on_dead)
        select @part_id, @predecessor_id, @message_id, @on_dead
        where not exists (
            select 1
            from rowq.successor s with (rowlock, readcommittedlock, forceseek)
            where s.part_id = @part_id
              and s.predecessor_id = @predecessor_id
              and s.message_id = @message_id
        );
        update b
        set predecessor_id = @predecessor_id,
            rest_ids = @rest_ids
        from rowq.blocked b with (rowlock, forceseek)
        where b.part_id = @part_id
          and b.message_id = @message_id
        option (maxdop 1);
    end;
    else if @state = N'failed'
    begin
        -- Its row is to have the error, and a producer may be adding a message that waits for it.
        set @locked_id = null;
        select @locked_id = m.message_id
        from rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where m.part_id = @part_id
          and m.message_id = @message_id;
        set @state = iif(@locked_id is null, N'again', N'failed');
        set @dead_id = @predecessor_id;
    end;
    else if @state = N'free' and @due_at > sysutcdatetime()
    begin
        insert into rowq.delayed with (rowlock) (part_id, due_at, message_id, lane, group_key)
        values (@part_id, @due_at, @message_id, @lane, @group_key);
        set @state = N'moved';
    end;
    else if @state = N'free' and @group_key is not null
    begin
        -- Groups take turns, so this one goes to the tail. A call that may not wait for a group
        -- leaves it to maintain.
        if @may_join = 1
            exec rowq.InternalTryJoinGroup
                @part_id, @group_key, @message_id, @lane, @has_token output;
        set @state = case @has_token when 1 then N'ready' when 0 then N'moved' else N'again' end;
    end;
    else
    begin
        -- What has been begun is finished first.
        set @lane = @lane / 2 * 2;
        set @state = iif(@state = N'free', N'ready', N'again');
    end;

    if @state in (N'moved', N'ready', N'failed')
        delete b
        from rowq.blocked b with (rowlock, forceseek)
        where b.part_id = @part_id
          and b.message_id = @message_id
        option (maxdop 1, keepfixed plan);
end
go

-- [file internal/unblock.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalUnblock
    @part_id int,
    @message_ids nvarchar(max),
    @ended_id bigint,
    @may_join bit,
    @again nvarchar(max) output,
    @failed nvarchar(max) output
as
begin
-- routine   InternalUnblock
-- purpose   Look again what blocked messages wait for, and let them go on where that is nothing. @again are the ids of those that need another look, @failed those that fail: [message_id, lane, the predecessor that is dead].
-- promise   P25 P26 P27
-- locks     blocked rows, tried only; as InternalTryUnblock; new ready rows
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @message_id bigint;
    declare @state nvarchar(20);
    declare @lane smallint;
    declare @dead_id bigint;
    declare @asked table (message_id bigint not null primary key);
    declare @left table (
        message_id bigint not null primary key,
        lane       smallint null,
        dead_id    bigint null
    );
    declare @ready rowq.message_list;
    set @again = null;
    set @failed = null;

    insert into @asked (message_id)
    select distinct cast(j.value as bigint) from openjson(@message_ids) j;
    -- What has been begun is finished first, so these go to the front of their priorities.
    delete b
    output deleted.message_id, deleted.lane / 2 * 2, 0, 0
    into @ready (message_id, lane, place, attempt)
    from @asked a
    inner join rowq.blocked b with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on b.part_id = @part_id
       and b.message_id = a.message_id
    where b.predecessor_id = @ended_id
      and b.rest_ids is null
      and b.group_key is null
      and (b.due_at is null or b.due_at <= @now)
    option (loop join, force order, maxdop 1);
    delete a
    from @asked a
    where exists (select 1 from @ready r where r.message_id = a.message_id);

    while 1 = 1
    begin
        set @message_id = null;
        select top (1) @message_id = a.message_id from @asked a order by a.message_id;
        if @message_id is null
            break;
        delete from @asked where message_id = @message_id;
        exec rowq.InternalTryUnblock
            @part_id, @message_id, @ended_id, @may_join, @state output, @lane output,
            @dead_id output;
        if @state = N'ready'
            insert into @ready (message_id, lane, place, attempt)
            values (@message_id, @lane, 0, 0);
        else if @state in (N'again', N'failed')
            insert into @left (message_id, lane, dead_id)
            values (@message_id, @lane, iif(@state = N'failed', @dead_id, null));
    end;
    if exists (select 1 from @ready)
        exec rowq.InternalPushReady @part_id, @ready;

    select @again = N'[' + string_agg(cast(f.message_id as nvarchar(max)), N',') + N']'
    from @left f
    where f.dead_id is null;
    select @failed = N'[' + string_agg(cast(j.entry as nvarchar(max)), N',') + N']'
    from (
        select concat(N'[', f.message_id, N',', f.lane, N',', f.dead_id, N']') as entry
        from @left f
        where f.dead_id is not null
    ) j;
end
go

-- [file internal/unknown_of.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalUnknownOf
    @part_id int,
    @message_ids nvarchar(max),
    @unknown_ids nvarchar(max) output
as
begin
-- routine   InternalUnknownOf
-- purpose   Return which of these messages have no body, or are finished and not yet archived; null where there is none.
-- promise   P15
-- locks     message rows, shared while they are read, tried only
-- differs   elsewhere a snapshot shows a message that an open transaction has finished
    set nocount on;
    declare @size int = 10000;
    declare @last_id bigint;
    declare @ids table (message_id bigint not null primary key);
    declare @unseen table (message_id bigint not null primary key);
    declare @unknown table (message_id bigint not null primary key);
    set @unknown_ids = null;

    insert into @ids (message_id)
    select distinct cast(j.value as bigint) from openjson(@message_ids) j;
    insert into @unknown (message_id)
    select distinct f.message_id
    from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
    inner join @ids j on j.message_id = f.message_id
    where f.part_id = @part_id
    option (hash join, force order, maxdop 1);
    -- A dirty read sees every message but those that are gone, and those that an open transaction
    -- has deleted. Only these are asked for again below.
    insert into @unseen (message_id)
    select j.message_id
    from @ids j
    where not exists (
            select 1
            from rowq.message m with (readuncommitted, forceseek)
            where m.part_id = @part_id
              and m.message_id = j.message_id
        )
      and not exists (select 1 from @unknown u where u.message_id = j.message_id)
    option (loop join, force order, maxdop 1);

    -- A row that another session has locked is error 1222 (nowait): it must not look like one that
    -- is not there. Without xact_abort that error ends no transaction. The option is off only here,
    -- where no table is written, and where nothing waits, so that no client's timeout comes.
    set xact_abort off;
    while 1 = 1
    begin
        set @last_id = null;
        select @last_id = max(h.message_id)
        from (select top (@size) n.message_id from @unseen n order by n.message_id) h;
        if @last_id is null
            break;
        begin try
            insert into @unknown (message_id)
            select n.message_id
            from @unseen n
            where n.message_id <= @last_id
              and not exists (
                  select 1
                  from rowq.message m with (rowlock, readcommittedlock, nowait, forceseek)
                  where m.part_id = @part_id
                    and m.message_id = n.message_id
              )
            option (loop join, force order, maxdop 1);
        end try
        begin catch
            if error_number() <> 1222
                throw;
            -- Ask one by one, to learn which of them it is.
            if @size > 1
            begin
                set @size = 1;
                continue;
            end;
        end catch;
        delete n from @unseen n where n.message_id <= @last_id;
    end;
    select @unknown_ids = N'[' + string_agg(cast(u.message_id as nvarchar(max)), N',') + N']'
    from @unknown u;
end
go

-- [file internal/unplaced_of.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalUnplacedOf
    @part_id int,
    @messages rowq.message_list readonly,
    @unplaced_ids nvarchar(max) output
as
begin
-- routine   InternalUnplacedOf
-- purpose   Return which of the messages are neither ready, at lane and place, nor delayed, blocked or in their groups, and are not on the way; null where there is none.
-- promise   P36
-- locks     rows, shared while they are read, tried only
-- differs   elsewhere one statement with one snapshot looks in all places
    set nocount on;
    -- To learn of each locked message that it is one takes errors, so leave the rest to the next
    -- call after so many.
    declare @most_locked int = 20;
    declare @most_at_once int = 10000;
    declare @size int = @most_at_once;
    declare @last_id bigint = 0;
    declare @next_id bigint;
    declare @count int;
    declare @locked int = 0;
    declare @some table (
        message_id bigint not null primary key,
        lane       smallint not null,
        seq        bigint not null,
        due_at     datetime2(6) null,
        group_key  varbinary(802) null
    );
    declare @unplaced table (message_id bigint not null primary key);
    set @unplaced_ids = null;

    -- A row that another session has locked is error 1222 (nowait): it must not look like one that
    -- is not there. Without xact_abort that error ends no transaction. The option is off only here,
    -- where no table is written, and where nothing waits, so that no client's timeout comes.
    set xact_abort off;
    while @locked < @most_locked
    begin
        delete from @some;
        insert into @some (message_id, lane, seq)
        select top (@size) j.message_id, j.lane, j.place
        from @messages j
        where j.message_id > @last_id
        order by j.message_id;
        set @count = @@rowcount;
        if @count = 0
            break;
        select @next_id = max(s.message_id) from @some s;
        begin try
            -- Look in the order in which a message moves that has no new note for it: from the
            -- blocked to the delayed ones and into its group. So it cannot slip through.
            update s
            set due_at    = m.due_at,
                group_key = convert(varbinary(802), m.group_key + N'.')
            from @some s
            inner join rowq.message m with (rowlock, readcommittedlock, nowait, forceseek)
                on m.part_id = @part_id
               and m.message_id = s.message_id
            option (loop join, force order, maxdop 1);
            delete s
            from @some s
            inner join rowq.blocked b with (rowlock, readcommittedlock, nowait, forceseek)
                on b.part_id = @part_id
               and b.message_id = s.message_id
            option (loop join, force order, maxdop 1);
            delete s
            from @some s
            inner join rowq.delayed d with (rowlock, readcommittedlock, nowait, forceseek)
                on d.part_id = @part_id
               and d.due_at = s.due_at
               and d.message_id = s.message_id
            option (loop join, force order, maxdop 1);
            delete s
            from @some s
            inner join rowq.grouped g with (rowlock, readcommittedlock, nowait, forceseek)
                on g.part_id = @part_id
               and g.group_key = s.group_key
               and g.message_id = s.message_id
            option (loop join, force order, maxdop 1);
            delete s
            from @some s
            inner join rowq.ready r with (rowlock, readcommittedlock, nowait, forceseek)
                on r.part_id = @part_id
               and r.lane = s.lane
               and r.seq = s.seq
               and r.message_id = s.message_id
            option (loop join, force order, maxdop 1);
            insert into @unplaced (message_id)
            select s.message_id from @some s;
        end try
        begin catch
            if error_number() <> 1222
                throw;
            -- Ask for a quarter of them, and so on, to learn which of them it is.
            if @count > 1
            begin
                set @size = (@count + 3) / 4;
                continue;
            end;
            set @locked += 1;
        end catch;
        set @last_id = @next_id;
        set @size = iif(@size * 4 < @most_at_once, @size * 4, @most_at_once);
    end;
    select @unplaced_ids = N'[' + string_agg(cast(u.message_id as nvarchar(max)), N',') + N']'
    from @unplaced u;
end
go

-- [file internal/widen_group.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalWidenGroup
    @part_id int,
    @group_limit int,
    @group_key varbinary(802),
    @is_done bit output
as
begin
-- routine   InternalWidenGroup
-- purpose   Give a group whose limit was raised its new tokens; @is_done is 0 where another look is needed. Call it in a transaction of rowq's own.
-- promise   P22 P24
-- locks     as InternalTryEnterGroup and InternalLeaveGroups
    set nocount on;
    declare @has_token bit = 1;
    declare @leaving rowq.message_list;

    insert into @leaving (message_id, lane, place, attempt, group_key)
    values (0, 0, 0, 0, @group_key);
    while @has_token = 1
        and exists (
            select 1
            from rowq.grouped g with (rowlock, readpast, readcommittedlock, forceseek)
            where g.part_id = @part_id
              and g.group_key = @group_key
        )
    begin
        exec rowq.InternalTryEnterGroup @part_id, @group_key, @group_limit, @has_token output;
        if @has_token = 1
            exec rowq.InternalLeaveGroups @part_id, @leaving, @may_close = 1;
    end;
    set @is_done = iif(@has_token is null, 0, 1);
end
go

-- [file internal/windows_zone.sql]
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

-- [file internal/withdraw.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalWithdraw
    @part_id int,
    @archive_days int,
    @message_ids nvarchar(max),
    @owns_transaction bit,
    @cancelled_ids nvarchar(max) output
as
begin
-- routine   InternalWithdraw
-- purpose   Cancel those messages that no worker holds; @cancelled_ids are their ids, null where there is none.
-- promise   P03 P12 P22
-- locks     blocked, delayed, dead, grouped and ready rows, passing over locked ones; a token of
--           each group, tried; then as InternalFinish
    set nocount on;
    declare @may_close bit;
    declare @count int;
    declare @ids table (message_id bigint not null primary key);
    declare @held table (message_id bigint not null primary key);
    declare @groups table (
        group_key    varbinary(802) not null primary key,
        is_exclusive bit null
    );
    declare @ready table (
        lane       smallint not null,
        seq        bigint not null,
        message_id bigint not null,
        primary key (lane, seq, message_id)
    );
    declare @taken rowq.message_list;
    set @cancelled_ids = null;

    insert into @ids (message_id)
    select distinct cast(j.value as bigint) from openjson(@message_ids) j;
    set @may_close = @owns_transaction;
    -- A message that waits for others goes to each of the other places from there, so look for it
    -- first.
    delete b
    output deleted.message_id, deleted.lane, 0, 0, 1
    into @taken (message_id, lane, place, attempt, is_tokenless)
    from @ids j
    inner join rowq.blocked b with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on b.part_id = @part_id
       and b.message_id = j.message_id
    option (loop join, force order, maxdop 1);
    delete d
    output deleted.message_id, deleted.lane, 0, deleted.attempt,
           iif(deleted.holds_group = 1, 0, 1)
    into @taken (message_id, lane, place, attempt, is_tokenless)
    from @ids j
    inner join rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
        on d.part_id = @part_id
       and d.message_id = j.message_id
    option (loop join, force order, maxdop 1);

    -- Find a delayed message by message.due_at, which is its place in delayed.
    delete d
    output deleted.message_id, deleted.lane, 0, deleted.attempt,
           iif(deleted.group_key is null, 0, 1)
    into @taken (message_id, lane, place, attempt, is_tokenless)
    from @ids j
    inner join rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
    inner join rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
        on d.part_id = @part_id
       and d.due_at = m.due_at
       and d.message_id = j.message_id
    option (loop join, force order, maxdop 1);

    -- A message that was never given back is in the tail lane of its priority, where its seq is the
    -- moment of its enqueued_at. The others that have a body are looked for among all ready
    -- messages.
    insert into @ready (lane, seq, message_id)
    select r.lane, r.seq, r.message_id
    from @ids j
    inner join rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
    inner join rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
        on r.part_id = @part_id
       and r.lane in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
       and r.seq = datediff_big(microsecond, '19700101', m.enqueued_at)
       and r.message_id = j.message_id
    option (loop join, force order, maxdop 1);
    delete j
    from @ids j
    where exists (select 1 from @taken t where t.message_id = j.message_id)
       or exists (select 1 from @ready r where r.message_id = j.message_id)
       or not exists (
            select 1
            from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
            where m.part_id = @part_id
              and m.message_id = j.message_id
        );
    if exists (select 1 from @ids)
    begin
        -- A message goes from its group to the ready ones, so look for it there first.
        insert into @groups (group_key)
        select distinct x.group_key
        from @ids j
        inner join rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
            on m.part_id = @part_id
           and m.message_id = j.message_id
           and m.group_key is not null
        inner join rowq.grouped x with (rowlock, readpast, readcommittedlock, forceseek)
            on x.part_id = @part_id
           and x.group_key = convert(varbinary(802), m.group_key + N'.')
           and x.message_id = j.message_id
        option (loop join, force order, maxdop 1);
        set @count = @@rowcount;
        -- Before it is taken out, hold a token of its group, so that nobody passes over it
        -- meanwhile. A transaction of its own locks that exclusively where it can, because below it
        -- may have to give back the token of another message. A group of which no token can be had
        -- is left alone, and its message counts as leased.
        if @count > 0 and @owns_transaction = 1
            update g
            set is_exclusive = 1
            from @groups g
            cross apply (
                select top (1) t.token_no
                from rowq.message_group t
                    with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                where t.part_id = @part_id
                  and t.group_key = g.group_key
                order by t.token_no
            ) t
            option (loop join, force order, maxdop 1);
        if @count > 0
        begin
            update g
            set is_exclusive = 0
            from @groups g
            cross apply (
                select top (1) t.token_no
                from rowq.message_group t
                    with (rowlock, updlock, readpast, readcommittedlock, forceseek)
                where t.part_id = @part_id
                  and t.group_key = g.group_key
                order by t.token_no
            ) t
            where g.is_exclusive is null
            option (loop join, force order, maxdop 1);
            if @@rowcount > 0
                set @may_close = 0;
            delete x
            output deleted.message_id, deleted.lane, 0, 0, 1
            into @taken (message_id, lane, place, attempt, is_tokenless)
            from @ids j
            inner join rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
                on m.part_id = @part_id
               and m.message_id = j.message_id
            inner join @groups g
                on g.group_key = convert(varbinary(802), m.group_key + N'.')
               and g.is_exclusive is not null
            inner join rowq.grouped x with (rowlock, readpast, readcommittedlock, forceseek)
                on x.part_id = @part_id
               and x.group_key = g.group_key
               and x.message_id = j.message_id
            option (loop join, force order, maxdop 1);
            delete j
            from @ids j
            where exists (select 1 from @taken t where t.message_id = j.message_id);
        end;
        -- No key leads from a message to its claim, so read what is leased once for all.
        insert into @held (message_id)
        select distinct l.message_id
        from rowq.leased l with (rowlock, readpast, readcommittedlock, forceseek)
        inner join @ids j on j.message_id = l.message_id
        where l.part_id = @part_id
        option (hash join, force order, maxdop 1);
    end;
    delete j
    from @ids j
    where exists (select 1 from @held h where h.message_id = j.message_id);
    if exists (select 1 from @ids)
        insert into @ready (lane, seq, message_id)
        select r.lane, r.seq, r.message_id
        from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
        inner join @ids j on j.message_id = r.message_id
        where r.part_id = @part_id
        option (hash join, force order, maxdop 1);
    delete r
    output deleted.message_id, deleted.lane, 0, deleted.attempt
    into @taken (message_id, lane, place, attempt)
    from @ready j
    inner join rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
        on r.part_id = @part_id
       and r.lane = j.lane
       and r.seq = j.seq
       and r.message_id = j.message_id
    option (loop join, force order, maxdop 1);

    if not exists (select 1 from @taken)
        return;
    exec rowq.InternalFinish @part_id, @archive_days, @taken, N'cancelled', @may_close;
    select @cancelled_ids = N'[' + string_agg(cast(t.message_id as nvarchar(max)), N',') + N']'
    from @taken t;
end
go

-- [file routines/create_queue.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.CreateQueue
    @queue_name nvarchar(max),
    @lease_seconds int = null,
    @max_attempts int = null,
    @backoff_base_seconds float = null,
    @backoff_factor float = null,
    @backoff_cap_seconds float = null,
    @backoff_jitter float = null,
    @archive_days int = null,
    @max_body_length int = null,
    @group_limit int = null,
    @group_after_dead nvarchar(max) = null,
    @group_pause_seconds float = null,
    @max_leased int = null,
    @rate_limit int = null,
    @rate_seconds float = null,
    @result_seconds float = null,
    @history_days int = null
as
begin
-- routine   CreateQueue
-- version   1
-- purpose   Create a queue; an existing queue of that name is left as it is.
-- promise   P15
-- locks     the new queue row, or the gap where it would be; the rows of its part
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @queue_key varbinary(402);
    declare @part_id int;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalCheckSettings
                @queue_name, @lease_seconds, @max_attempts, @backoff_base_seconds,
                @backoff_factor, @backoff_cap_seconds, @backoff_jitter, @archive_days,
                @max_body_length, @group_limit, @group_after_dead, @group_pause_seconds,
                @max_leased, @rate_limit, @rate_seconds, @result_seconds,
                @history_days;
            set @queue_key = convert(varbinary(402), @queue_name + N'.');

            if @owns_transaction = 1
                begin transaction;
            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            set @part_id = null;
            -- If two sessions create the same queue, the second one waits for the gap that the
            -- first one has locked (holdlock), and then finds the row.
            insert into rowq.queue (
                queue_key, queue_name, lease_seconds, max_attempts, backoff_base_seconds,
                backoff_factor, backoff_cap_seconds, backoff_jitter, archive_days,
                max_body_length, group_limit, group_after_dead, group_pause_seconds, max_leased,
                rate_limit, rate_seconds, result_seconds, history_days, created_at
            )
            select @queue_key, @queue_name, coalesce(@lease_seconds, 30),
                   coalesce(@max_attempts, 10), coalesce(@backoff_base_seconds, 5),
                   coalesce(@backoff_factor, 2), coalesce(@backoff_cap_seconds, 3600),
                   coalesce(@backoff_jitter, 0.2), coalesce(@archive_days, 0),
                   coalesce(@max_body_length, 1048576), coalesce(@group_limit, 1),
                   coalesce(@group_after_dead, N'continue'), coalesce(@group_pause_seconds, 0),
                   coalesce(@max_leased, 0), coalesce(@rate_limit, 0), coalesce(@rate_seconds, 1),
                   coalesce(@result_seconds, 0), coalesce(@history_days, 0), sysutcdatetime()
            where not exists (
                select 1
                from rowq.queue q with (rowlock, updlock, holdlock)
                where q.queue_key = @queue_key
            );
            if @@rowcount = 1
            begin
                set @part_id = cast(scope_identity() as int);
                exec rowq.InternalAddPart @part_id;
            end;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;

    select cast(@queue_name as nvarchar(200)) as queue_name,
           iif(@part_id is null, N'exists', N'created') as outcome;
end
go

-- [file routines/alter_queue.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.AlterQueue
    @queue_name nvarchar(max),
    @lease_seconds int = null,
    @max_attempts int = null,
    @backoff_base_seconds float = null,
    @backoff_factor float = null,
    @backoff_cap_seconds float = null,
    @backoff_jitter float = null,
    @archive_days int = null,
    @max_body_length int = null,
    @group_limit int = null,
    @group_after_dead nvarchar(max) = null,
    @group_pause_seconds float = null,
    @max_leased int = null,
    @rate_limit int = null,
    @rate_seconds float = null,
    @result_seconds float = null,
    @history_days int = null
as
begin
-- routine   AlterQueue
-- version   1
-- purpose   Change settings of a queue; null leaves a setting as it is.
-- promise   P15
-- locks     the part, shared; the queue row; new recheck rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @old table (group_limit smallint not null);

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalCheckSettings
                @queue_name, @lease_seconds, @max_attempts, @backoff_base_seconds,
                @backoff_factor, @backoff_cap_seconds, @backoff_jitter, @archive_days,
                @max_body_length, @group_limit, @group_after_dead, @group_pause_seconds,
                @max_leased, @rate_limit, @rate_seconds, @result_seconds,
                @history_days;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue @queue_name, @part_id output;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            update q
            set lease_seconds        = coalesce(@lease_seconds, q.lease_seconds),
                max_attempts         = coalesce(@max_attempts, q.max_attempts),
                backoff_base_seconds = coalesce(@backoff_base_seconds, q.backoff_base_seconds),
                backoff_factor       = coalesce(@backoff_factor, q.backoff_factor),
                backoff_cap_seconds  = coalesce(@backoff_cap_seconds, q.backoff_cap_seconds),
                backoff_jitter       = coalesce(@backoff_jitter, q.backoff_jitter),
                archive_days         = coalesce(@archive_days, q.archive_days),
                max_body_length      = coalesce(@max_body_length, q.max_body_length),
                group_limit          = coalesce(@group_limit, q.group_limit),
                group_after_dead     = coalesce(@group_after_dead, q.group_after_dead),
                group_pause_seconds  = coalesce(@group_pause_seconds, q.group_pause_seconds),
                max_leased           = coalesce(@max_leased, q.max_leased),
                rate_limit           = coalesce(@rate_limit, q.rate_limit),
                rate_seconds         = coalesce(@rate_seconds, q.rate_seconds),
                result_seconds       = coalesce(@result_seconds, q.result_seconds),
                history_days         = coalesce(@history_days, q.history_days)
            output deleted.group_limit into @old (group_limit)
            from rowq.queue q with (rowlock)
            where q.queue_key = convert(varbinary(402), @queue_name + N'.');
            if exists (select 1 from @old o where o.group_limit < @group_limit)
                exec rowq.InternalHintGroups @part_id;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
            delete from @old;
        end catch;
    end;

    select cast(@queue_name as nvarchar(200)) as queue_name, N'altered' as outcome;
end
go

-- [file routines/drop_queue.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.DropQueue
    @queue_name nvarchar(max),
    @force bit = 0
as
begin
-- routine   DropQueue
-- version   1
-- purpose   Remove an empty queue, or with force a queue and everything in it, archive included.
-- promise   P02 P15
-- locks     the part for itself, all rows of the queue, waiting for a second at most
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ704 RQ705 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    set lock_timeout 1000;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @is_saved bit = 0;
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalRequireQueue @queue_name, @part_id output;
            -- Refuse before a lock is asked for, where it is plain already.
            if coalesce(@force, 0) = 0
                exec rowq.InternalRefuseNotEmpty @part_id, @queue_name;
            -- Wait for open enqueues, because their messages are not visible yet.
            exec rowq.InternalLockPartExclusive @part_id, @queue_name;
            if coalesce(@force, 0) = 0
                exec rowq.InternalRefuseNotEmpty @part_id, @queue_name;

            if @owns_transaction = 0
            begin
                save transaction rowq_call;
                set @is_saved = 1;
            end;
            exec rowq.InternalDeleteQueue @part_id;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- Take back the work of this call only: its own transaction, or the caller's down to
            -- the savepoint. There is no way back to a savepoint in a transaction that is doomed.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;
            else if @is_saved = 1 and xact_state() = 1
                rollback transaction rowq_call;

            -- 1222 means that lock_timeout has ended the wait. A guest has xact_abort off for that,
            -- because a refusal must leave the caller's transaction as it was.
            if error_number() = 1222
                throw 52705, N'RQ705 queue_busy: open transactions hold the queue; try again', 1;
            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;

    select cast(@queue_name as nvarchar(200)) as queue_name, N'dropped' as outcome;
end
go

-- [file routines/pause_queue.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.PauseQueue
    @queue_name nvarchar(max)
as
begin
-- routine   PauseQueue
-- version   1
-- purpose   Stop delivery; enqueue and the finishing routines go on.
-- promise   P18
-- locks     the queue row
-- commits   never; one statement, a transaction of its own where the caller has none
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    declare @begun int;
    declare @part_id int;

    begin try
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @part_id output;

        update q
        set paused_at = coalesce(q.paused_at, sysutcdatetime())
        from rowq.queue q with (rowlock)
        where q.part_id = @part_id;
        if @@rowcount = 0
            exec rowq.InternalRefuseQueue @queue_name;

        select cast(@queue_name as nvarchar(200)) as queue_name, N'paused' as outcome;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go

-- [file routines/resume_queue.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.ResumeQueue
    @queue_name nvarchar(max)
as
begin
-- routine   ResumeQueue
-- version   1
-- purpose   Start delivery again.
-- promise   P18
-- locks     the queue row
-- commits   never; one statement, a transaction of its own where the caller has none
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    declare @begun int;
    declare @part_id int;

    begin try
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @part_id output;

        update q
        set paused_at = null
        from rowq.queue q with (rowlock)
        where q.part_id = @part_id;
        if @@rowcount = 0
            exec rowq.InternalRefuseQueue @queue_name;

        select cast(@queue_name as nvarchar(200)) as queue_name, N'resumed' as outcome;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go

-- [file routines/bind_topic.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.BindTopic
    @queue_name nvarchar(max),
    @topic_pattern nvarchar(max)
as
begin
-- routine   BindTopic
-- version   1
-- purpose   Let a queue get what is published under the topics that a pattern matches.
-- promise   P15 P35
-- locks     the part, shared; the new topic_binding row; waits for another session that adds it
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @pattern nvarchar(200);
    declare @fault nvarchar(200);
    declare @outcome nvarchar(20);

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalTopicFault N'topic_pattern', @topic_pattern, 1, @fault output;
            if @fault is not null
                exec rowq.InternalRefuse @fault;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue @queue_name, @part_id output;
            set @pattern = @topic_pattern;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            -- If another session has added the pattern meanwhile, this inserts no row and raises no
            -- error (ignore_dup_key).
            insert into rowq.topic_binding with (rowlock) (
                part_id, topic_pattern, word_count, has_rest, literal_head, like_pattern
            )
            select @part_id, w.pattern,
                   iif(w.words = N'', 0, len(w.words) - len(replace(w.words, N'.', N'')) + 1),
                   iif(right(w.pattern, 1) = N'#', 1, 0),
                   case
                       when charindex(N'*', w.words) = 0 then w.words
                       when charindex(N'*', w.words) > 2
                           then left(w.words, charindex(N'*', w.words) - 2)
                       else N''
                   end,
                   iif(
                       charindex(N'*', w.words) = 0, null,
                       replace(replace(w.words, N'_', N'!_'), N'*', N'%')
                   )
            from (
                -- words is the pattern without its #. The collation compares the bytes.
                select p.pattern,
                       case
                           when p.pattern = N'#' then N''
                           when right(p.pattern, 1) = N'#' then left(p.pattern, len(p.pattern) - 2)
                           else p.pattern
                       end as words
                from (select @pattern collate Latin1_General_100_BIN2 as pattern) p
            ) w
            where not exists (
                select 1
                from rowq.topic_binding b with (rowlock, readcommittedlock, forceseek)
                where b.part_id = @part_id
                  and b.topic_pattern = @pattern
            )
            option (loop join, maxdop 1);
            set @outcome = iif(@@rowcount = 1, N'bound', N'exists');

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;

    select cast(@queue_name as nvarchar(200)) as queue_name,
           cast(@topic_pattern as nvarchar(200)) as topic_pattern, @outcome as outcome;
end
go

-- [file routines/unbind_topic.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.UnbindTopic
    @queue_name nvarchar(max),
    @topic_pattern nvarchar(max)
as
begin
-- routine   UnbindTopic
-- version   1
-- purpose   Take a queue's pattern away; what it has got stays.
-- promise   P15 P35
-- locks     the part, shared; the topic_binding row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @pattern nvarchar(200);
    declare @fault nvarchar(200);
    declare @outcome nvarchar(20);

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalTopicFault N'topic_pattern', @topic_pattern, 1, @fault output;
            if @fault is not null
                exec rowq.InternalRefuse @fault;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue @queue_name, @part_id output;
            set @pattern = @topic_pattern;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            delete b
            from rowq.topic_binding b with (rowlock, forceseek)
            where b.part_id = @part_id
              and b.topic_pattern = @pattern
            option (maxdop 1);
            set @outcome = iif(@@rowcount = 1, N'unbound', N'not_bound');

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;

    select cast(@queue_name as nvarchar(200)) as queue_name,
           cast(@topic_pattern as nvarchar(200)) as topic_pattern, @outcome as outcome;
end
go

-- [file routines/purge_queue.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.PurgeQueue
    @queue_name nvarchar(max),
    @include_dead bit = 0,
    @max_messages int = null
as
begin
-- routine   PurgeQueue
-- version   1
-- purpose   Delete waiting messages: ready, delayed, blocked; leased ones stay with their workers.
-- promise   P15
-- locks     the part, shared; blocked, grouped, ready, delayed, dead rows, passing over locked
--           ones; then as complete
-- commits   where the caller has no transaction, after each 4000 messages; never the caller's
-- errors    RQ701 RQ711
-- differs   where others delete in one transaction, a large queue would hold a million row locks
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    -- Begin with what waits for others, so that none of it is made ready by the end of what it
    -- waits for, and no token is passed on to a message that goes too.
    declare @stage smallint = -2;
    declare @next smallint;
    declare @from_key varbinary(802) = 0x;
    declare @after_key varbinary(802);
    declare @from bigint = 0;
    declare @after bigint;
    declare @step int;
    declare @removed int;
    declare @all_removed bigint = 0;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalCheckRange N'max_messages', @max_messages, 1, 10000;
            while @stage < iif(@include_dead = 1, 22, 21)
            begin
                set @step = iif(
                    @max_messages - @all_removed < 4000, @max_messages - @all_removed, 4000
                );
                if @step = 0
                    break;
                set @next = @stage;
                set @after_key = @from_key;
                set @after = @from;
                if @owns_transaction = 1
                    begin transaction;
                exec rowq.InternalEnterQueue @queue_name, @part_id output;
                -- Now the call writes. If the client gives up half-way, the engine takes back the
                -- whole transaction (xact_abort), so that nobody can commit one half of a call.
                set xact_abort on;
                exec rowq.InternalPurgeStep
                    @part_id, @step, @owns_transaction, @next output, @after_key output,
                    @after output, @removed output;
                if @owns_transaction = 1
                    commit transaction;
                set @stage = @next;
                set @from_key = @after_key;
                set @from = @after;
                set @all_removed += @removed;
            end;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again. So does one that came to a group at the same moment as a producer.
            set @tries_left = iif(
                @owns_transaction = 1
                    and (
                        error_number() = 1205
                        or error_number() = 1222
                            and error_procedure() like N'%InternalTryEnterGroup'
                    ),
                @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;

    select @all_removed as removed;
end
go

-- [file routines/enqueue.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Enqueue
    @queue_name nvarchar(max),
    @body nvarchar(max) = null,
    @body_binary varbinary(max) = null,
    @message_type nvarchar(max) = null,
    @headers nvarchar(max) = null,
    @priority int = 5,
    @delay_seconds float = null,
    @run_at datetime2(6) = null,
    @dedup_key nvarchar(max) = null,
    @max_attempts int = null,
    @group_key nvarchar(max) = null,
    @predecessor_ids nvarchar(max) = null,
    @on_predecessor_dead nvarchar(max) = null,
    @expire_seconds float = null
as
begin
-- routine   Enqueue
-- version   1
-- purpose   Hand over one message.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P27 P36
-- locks     new rows; the part, shared; with a dedup key, waits for another open enqueue of it;
--           with a group key, for one that has opened the group, and for what is closing it; the
--           message row of a predecessor, shared, tried only
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @max_body_length int;
    declare @group_limit int;
    declare @group_bytes varbinary(802);
    declare @has_token bit;
    declare @state nvarchar(20);
    declare @predecessor_id bigint;
    declare @rest_ids nvarchar(max);
    declare @now datetime2(6);
    declare @due_at datetime2(6);
    declare @expires_at datetime2(6);
    declare @lane smallint;
    declare @is_open bit;
    declare @message_id bigint;
    declare @holder bigint;
    declare @outcome nvarchar(20);

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            set @holder = null;
            if @body is not null and @body_binary is not null
                exec rowq.InternalRefuse N'body and body_binary exclude each other';
            exec rowq.InternalCheckMessage
                @message_type, @headers, @priority, @delay_seconds, @run_at, @dedup_key,
                @max_attempts, @group_key, @predecessor_ids, @on_predecessor_dead, @expire_seconds;
            set @lane = @priority * 2 + 1;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @part_id output, @max_body_length = @max_body_length output,
                @group_limit = @group_limit output;
            if datalength(@body) / 2 > @max_body_length
                or datalength(@body_binary) > @max_body_length
                exec rowq.InternalCheckBody @body, @body_binary, @max_body_length;

            exec rowq.InternalNextMessageId @message_id output;
            if @predecessor_ids is not null
                and @message_id <= (
                    select max(cast(j.value as bigint)) from openjson(@predecessor_ids) j
                )
                exec rowq.InternalRefuse N'predecessor_ids must name messages that are there';

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            if @dedup_key is not null
                exec rowq.InternalReserveDedupKey @part_id, @dedup_key, @message_id, @holder output;

            if @holder is null
            begin
                set @now = sysutcdatetime();
                set @due_at = coalesce(
                    @run_at,
                    dateadd(
                        microsecond,
                        cast(round((@delay_seconds - floor(@delay_seconds)) * 1e6, 0) as int),
                        dateadd(second, cast(floor(@delay_seconds) as int), @now)
                    )
                );
                if @due_at <= @now
                    set @due_at = null;
                set @state = N'free';
                if @predecessor_ids is not null
                    exec rowq.InternalAwaitPredecessor
                        @part_id, @predecessor_ids, @on_predecessor_dead, @state output,
                        @predecessor_id output, @rest_ids output;
                set @has_token = 1;
                if @group_key is not null
                begin
                    set @group_bytes = convert(varbinary(802), @group_key + N'.');
                    if @due_at is null and @state = N'free'
                        exec rowq.InternalEnterGroup
                            @part_id, @group_bytes, @group_limit, @has_token output;
                    -- That may have waited, and the place of a ready message is the moment of now.
                    set @now = sysutcdatetime();
                end;
                set @expires_at = dateadd(
                    microsecond,
                    cast(round((@expire_seconds - floor(@expire_seconds)) * 1e6, 0) as int),
                    dateadd(second, cast(floor(@expire_seconds) as int), @now)
                );
                insert into rowq.message with (rowlock) (
                    part_id, message_id, max_attempts, enqueued_at, due_at, expires_at,
                    message_type, dedup_key, headers, body, body_binary, group_key
                )
                values (
                    @part_id, @message_id, @max_attempts, @now, @due_at, @expires_at,
                    @message_type, @dedup_key, @headers, @body, @body_binary, @group_key
                );

                -- The lane of the default priority is always open.
                if @lane <> 11
                begin
                    select @is_open = l.is_open
                    from rowq.lane l with (readuncommitted, forceseek)
                    where l.part_id = @part_id
                      and l.lane = @lane;
                    if @is_open = 0
                        exec rowq.InternalOpenLanes @part_id, @lane;
                end;

                if @state <> N'free'
                    exec rowq.InternalBlock
                        @part_id, @message_id, @lane, @due_at, @group_bytes,
                        @on_predecessor_dead, @state, @predecessor_id, @rest_ids;
                else if @due_at is null and @has_token = 1
                    insert into rowq.ready with (rowlock) (part_id, lane, seq, message_id)
                    values (
                        @part_id, @lane, datediff_big(microsecond, '19700101', @now), @message_id
                    );
                else if @due_at is null
                    insert into rowq.grouped with (rowlock) (part_id, group_key, message_id, lane)
                    values (@part_id, @group_bytes, @message_id, @lane);
                else
                    insert into rowq.delayed with (rowlock)
                        (part_id, due_at, message_id, lane, group_key)
                    values (@part_id, @due_at, @message_id, @lane, @group_bytes);
                -- Where the message is not ready, maintain finds it by other keys.
                if @expires_at is not null
                    insert into rowq.expiry with (rowlock)
                        (part_id, expires_at, expiry_id, message_id, lane, seq)
                    values (
                        @part_id, @expires_at, @message_id, @message_id, @lane,
                        datediff_big(microsecond, '19700101', @now)
                    );
            end;
            set @outcome = iif(@holder is null, N'enqueued', N'duplicate');

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;

    select coalesce(@holder, @message_id) as message_id, @outcome as outcome;
end
go

-- [file routines/enqueue_batch.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.EnqueueBatch
    @queue_name nvarchar(max),
    @messages nvarchar(max)
as
begin
-- routine   EnqueueBatch
-- version   1
-- purpose   Hand over many messages in one call: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P26 P27 P36
-- locks     new rows; the part, shared; with dedup and group keys, waits as enqueue does, in the
--           order of the keys; message rows of predecessors, shared, tried only
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    exec rowq.InternalEnqueueBatch @queue_name, @messages;
end
go

-- [file routines/publish.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Publish
    @topic nvarchar(max),
    @body nvarchar(max) = null,
    @body_binary varbinary(max) = null,
    @message_type nvarchar(max) = null,
    @headers nvarchar(max) = null,
    @priority int = 5,
    @delay_seconds float = null,
    @run_at datetime2(6) = null,
    @dedup_key nvarchar(max) = null,
    @max_attempts int = null,
    @group_key nvarchar(max) = null,
    @expire_seconds float = null
as
begin
-- routine   Publish
-- version   1
-- purpose   Hand over one message to each queue that is bound to a topic, in the order of their names; to none where none is. Without a message_type it is the topic.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as InternalBoundQueues; as InternalStore, queue by queue in the order of their names
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @fault nvarchar(200);
    declare @messages nvarchar(300);
    declare @queues nvarchar(max);
    declare @max_body_length int;
    declare @turn int;
    declare @part_id int;
    declare @group_limit int;
    declare @message_id bigint;
    declare @outcome nvarchar(20);
    -- turn is the place of a queue in @queues.
    declare @stored table (
        turn       int not null primary key,
        message_id bigint not null,
        outcome    nvarchar(20) not null
    );

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalTopicFault N'topic', @topic, 0, @fault output;
            if @fault is not null
                exec rowq.InternalRefuse @fault;
            if @body is not null and @body_binary is not null
                exec rowq.InternalRefuse N'body and body_binary exclude each other';
            exec rowq.InternalCheckMessage
                @message_type, @headers, @priority, @delay_seconds, @run_at, @dedup_key,
                @max_attempts, @group_key, null, null, @expire_seconds;
            set @message_type = coalesce(@message_type, @topic);

            if @owns_transaction = 1
                begin transaction;
            set @messages = concat(N'[{"topic":"', @topic, N'"}]');
            exec rowq.InternalBoundQueues @messages, @queues output;
            -- Each queue must take the body.
            set @max_body_length = 33554432;
            select top (1) @max_body_length = q.max_body_length
            from openjson(@queues) with (max_body_length int) q
            order by q.max_body_length;
            exec rowq.InternalCheckBody @body, @body_binary, @max_body_length;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            set @turn = 0;
            while 1 = 1
            begin
                select @part_id = cast(json_value(q.value, N'$.part_id') as int),
                       @group_limit = cast(json_value(q.value, N'$.group_limit') as int)
                from openjson(@queues) q
                where q.[key] = cast(@turn as nvarchar(10));
                if @@rowcount = 0
                    break;
                exec rowq.InternalStore
                    @part_id, @group_limit, @body, @body_binary, @message_type, @headers, @priority,
                    @delay_seconds, @run_at, @dedup_key, @max_attempts, @group_key,
                    @expire_seconds, @message_id output, @outcome output;
                insert into @stored (turn, message_id, outcome)
                values (@turn, @message_id, @outcome);
                set @turn += 1;
            end;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
            delete from @stored;
        end catch;
    end;

    select cast(json_value(q.value, N'$.queue_name') as nvarchar(200)) as queue_name, s.message_id,
           s.outcome
    from openjson(@queues) q
    inner join @stored s on s.turn = cast(q.[key] as int)
    order by s.turn
    option (loop join, force order, maxdop 1);
end
go

-- [file routines/publish_batch.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.PublishBatch
    @messages nvarchar(max)
as
begin
-- routine   PublishBatch
-- version   1
-- purpose   Do what publish does with many messages in one call, queue by queue: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as InternalBoundQueues; as enqueue_batch, queue by queue in the order of their names
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    exec rowq.InternalEnqueueBatch null, @messages, @is_published = 1;
end
go

-- [file routines/dequeue_fast.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.DequeueFast
    @queue_name nvarchar(max),
    @batch_size int = 1,
    @worker_name nvarchar(max) = null,
    @lease_seconds int = null
as
begin
-- routine   DequeueFast
-- version   1
-- purpose   Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.
-- promise   P02 P03 P05 P06 P07 P13 P18 P28 P29
-- locks     the part, shared; where the queue has limits, its gate, tried for a tenth of a second;
--           ready rows, passing over locked ones; the new claim row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   the messages of a claim are rows of leased
    set nocount on;
    set rowcount 0;
    set textsize 2147483647;
    set xact_abort off;
    declare @part_id int;
    declare @claim_id bigint;
    declare @lease_until datetime2(6);

    exec rowq.InternalDequeue
        @queue_name, @batch_size, @worker_name, @lease_seconds,
        @part_id output, @claim_id output, @lease_until output;

    -- After the commit: bodies are read while nothing is locked, in the order of the key.
    set transaction isolation level read committed;
    select @claim_id as claim_id, m.message_id, cast(l.attempt as int) as attempt,
           m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at,
           @lease_until as lease_until, m.last_error
    from rowq.leased l with (forceseek)
    inner join rowq.message m with (forceseek)
        on m.part_id = @part_id
       and m.message_id = l.message_id
    where l.part_id = @part_id
      and l.claim_id = @claim_id
    order by l.lane, l.seq, l.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
end
go

-- [file routines/dequeue_wait.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.DequeueWait
    @queue_name nvarchar(max),
    @batch_size int = 1,
    @worker_name nvarchar(max) = null,
    @lease_seconds int = null,
    @wait_seconds float = 20
as
begin
-- routine   DequeueWait
-- version   1
-- purpose   Do what dequeue_fast does, but wait until something is ready or the time is up; return fewer messages where they are long.
-- promise   P03 P17
-- locks     as dequeue_fast; while it waits, the session's lock rowq.wait.<part_id>
-- commits   after each look, so that no lock is held while it waits
-- errors    RQ701 RQ711 RQ713
-- differs   rows come as one JSON array, in a result set of one column
    set nocount on;
    set rowcount 0;
    set textsize 2147483647;
    set xact_abort off;
    declare @until datetime2(6);
    declare @left_ms int;
    declare @pause_ms int = 20;
    declare @pause char(12);
    declare @part_id int;
    declare @claim_id bigint;
    declare @lease_until datetime2(6);
    declare @lock nvarchar(255);
    declare @turn int = -1;

    exec rowq.InternalCheckRange N'wait_seconds', @wait_seconds, 0, 3600, @is_required = 1;
    -- Bit 2 of the options is implicit_transactions: then the first look would begin a transaction
    -- of the caller's.
    if @@trancount > 0 or @@options & 2 = 2
        throw 52713, N'RQ713 wrong_transaction_state: dequeue_wait commits while it waits', 1;
    set @until = dateadd(millisecond, cast(@wait_seconds * 1000 as int), sysutcdatetime());

    begin try
        while 1 = 1
        begin
            exec rowq.InternalDequeue
                @queue_name, @batch_size, @worker_name, @lease_seconds,
                @part_id output, @claim_id output, @lease_until output,
                -- The answer is one value of at most 2 GB, and JSON may write one character as six.
                @most_bytes = 67108864;
            set @left_ms = datediff_big(millisecond, sysutcdatetime(), @until);
            if @claim_id is not null or @left_ms <= 0
                break;

            if @turn < 0
            begin
                -- One waiter of a queue looks every 20 to 100 ms. The others wait for its lock, and
                -- look once a second in case the lock was left behind.
                set @lock = concat(N'rowq.wait.', @part_id);
                -- Release it until it is free: a call that was broken off may have left this
                -- session holding it more than once.
                while applock_mode(N'public', @lock, N'Session') <> N'NoLock'
                    exec sys.sp_releaseapplock @Resource = @lock, @LockOwner = N'Session';
                set @left_ms = iif(@left_ms > 1000, 1000, @left_ms);
                exec @turn = sys.sp_getapplock
                    @Resource = @lock, @LockMode = N'Exclusive', @LockOwner = N'Session',
                    @LockTimeout = @left_ms;
                continue;
            end;

            set @left_ms = iif(@left_ms > @pause_ms, @pause_ms, @left_ms);
            set @pause = concat(N'00:00:00.', right(concat(N'00', @left_ms), 3));
            waitfor delay @pause;
            set @pause_ms = iif(@pause_ms > 50, 100, @pause_ms * 2);
        end;
        if @turn >= 0
            exec sys.sp_releaseapplock @Resource = @lock, @LockOwner = N'Session';
    end try
    begin catch
        if @turn >= 0
            exec sys.sp_releaseapplock @Resource = @lock, @LockOwner = N'Session';
        throw;
    end catch;

    set transaction isolation level read committed;
    select (
        select @claim_id as claim_id, m.message_id, l.attempt, m.message_type,
               json_query(m.headers, '$') as headers, m.body, m.body_binary,
               concat(convert(nvarchar(30), m.enqueued_at, 126), N'+00:00') as enqueued_at,
               concat(convert(nvarchar(30), @lease_until, 126), N'+00:00') as lease_until,
               m.last_error
        from rowq.leased l with (forceseek)
        inner join rowq.message m with (forceseek)
            on m.part_id = @part_id
           and m.message_id = l.message_id
        where l.part_id = @part_id
          and l.claim_id = @claim_id
        order by l.lane, l.seq, l.message_id
        for json path, include_null_values
    ) as messages
    option (loop join, force order, maxdop 1, keepfixed plan);
end
go

-- [file routines/peek.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Peek
    @queue_name nvarchar(max),
    @max_messages int = 1
as
begin
-- routine   Peek
-- version   1
-- purpose   Show the next ready messages without leasing them.
-- promise   P05
-- locks     ready and message rows, shared while they are read, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set textsize 2147483647;
    set xact_abort off;
    declare @begun int;
    declare @part_id int;
    declare @left int = @max_messages;
    declare @lane smallint = -1;
    declare @next smallint;
    declare @floor bigint;
    declare @found table (
        lane       smallint not null,
        seq        bigint not null,
        message_id bigint not null,
        attempt    smallint not null,
        primary key (lane, seq, message_id)
    );

    begin try
        exec rowq.InternalCheckRange N'max_messages', @max_messages, 1, 1000, @is_required = 1;
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @part_id output;

        while @left > 0
        begin
            set @next = null;
            select top (1) @next = l.lane, @floor = l.floor
            from rowq.lane l with (readuncommitted, forceseek)
            where l.part_id = @part_id
              and l.lane > @lane
              and l.is_open = 1
            order by l.lane
            option (maxdop 1, keepfixed plan);
            if @next is null
                break;
            set @lane = @next;

            insert into @found (lane, seq, message_id, attempt)
            select top (@left) r.lane, r.seq, r.message_id, r.attempt
            from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
            where r.part_id = @part_id
              and r.lane = @lane
              and r.seq >= @floor
            order by r.seq, r.message_id
            option (maxdop 1, keepfixed plan);
            set @left -= @@rowcount;
        end;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;

    select m.message_id, j.lane / 2 as priority, cast(j.attempt as int) as attempt,
           m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at, m.last_error
    from @found j
    inner join rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
    order by j.lane, j.seq, j.message_id
    option (loop join, force order, maxdop 1);
end
go

-- [file routines/complete.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Complete
    @queue_name nvarchar(max),
    @claim_id bigint,
    @message_ids nvarchar(max) = null,
    @results nvarchar(max) = null
as
begin
-- routine   Complete
-- version   1
-- purpose   Finish messages: they are gone, or in the archive, and never delivered again.
-- promise   P04 P08 P21 P22 P23 P24 P26 P32 P37
-- locks     the part, shared; the claim row; then message and dedup rows, waiting for who has just
--           named one of the messages as a predecessor; rows of groups and of messages that wait,
--           tried only; new result and history rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @archive_days int;
    declare @result_seconds float;
    declare @history_days int;
    declare @worker_name nvarchar(400);
    declare @leased_at datetime2(6);
    declare @count int;
    declare @asked table (
        message_id bigint not null,
        place      int not null,
        primary key (message_id, place)
    );
    declare @taken rowq.message_list;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            if @message_ids is not null
                exec rowq.InternalCheckIds @message_ids;
            if @claim_id is null
                exec rowq.InternalRefuse N'claim_id is missing';
            if @message_ids is not null
                insert into @asked (place, message_id)
                select cast(j.[key] as int), cast(j.value as bigint)
                from openjson(@message_ids) j;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @part_id output, @archive_days = @archive_days output,
                @result_seconds = @result_seconds output, @history_days = @history_days output;
            if @results is not null
            begin
                set @count = 1;
                if @message_ids is not null
                    select @count = count(*) from @asked;
                exec rowq.InternalCheckResults @results, @count, @result_seconds;
            end;
            -- A refusal must find nothing written, so a guest locks the claim first. In a
            -- transaction of its own, and without a list, results or history, deleting the claim
            -- below is the fence.
            if @owns_transaction = 0
                or @message_ids is not null
                or @results is not null
                or @history_days > 0
                exec rowq.InternalLockClaim
                    @part_id, @claim_id, @message_ids, @worker_name = @worker_name output,
                    @leased_at = @leased_at output;
            if @results is not null and @message_ids is null
            begin
                select @count = count(*)
                from rowq.leased l with (forceseek)
                where l.part_id = @part_id
                  and l.claim_id = @claim_id
                option (maxdop 1, keepfixed plan);
                if @count > 1
                    exec rowq.InternalRefuse
                        N'results without message_ids are of a claim of one message';
            end;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            if @message_ids is null
                exec rowq.InternalDeleteClaim @part_id, @claim_id;
            delete l
            output deleted.message_id, deleted.lane, deleted.seq, deleted.attempt
            into @taken (message_id, lane, place, attempt)
            from rowq.leased l with (rowlock, forceseek)
            where l.part_id = @part_id
              and l.claim_id = @claim_id
              and (
                  @message_ids is null
                  or exists (select 1 from @asked a where a.message_id = l.message_id)
              )
            option (loop join, maxdop 1, keepfixed plan);
            if @message_ids is not null
                exec rowq.InternalDeleteEmptyClaim @part_id, @claim_id;
            exec rowq.InternalFinish
                @part_id, @archive_days, @taken, N'completed', @owns_transaction;
            if @result_seconds > 0
                exec rowq.InternalPushResult
                    @part_id, @taken, N'completed', null, @results, @message_ids;
            if @history_days > 0
                exec rowq.InternalPushHistory
                    @part_id, @claim_id, @worker_name, @leased_at, @taken, N'completed';

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again. So does one that came to a group at the same moment as a producer.
            set @tries_left = iif(
                @owns_transaction = 1
                    and (
                        error_number() = 1205
                        or error_number() = 1222
                            and error_procedure() like N'%InternalTryEnterGroup'
                    ),
                @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
            delete from @asked;
            delete from @taken;
        end catch;
    end;

    -- The result is all that the claim held, in the order of delivery, or the messages that were
    -- asked for, in the order of the list.
    if @message_ids is null
        select j.message_id, N'completed' as outcome
        from @taken j
        order by j.lane, j.place, j.message_id;
    else
        select a.message_id, iif(j.message_id is null, N'stale', N'completed') as outcome
        from @asked a
        left join @taken j on j.message_id = a.message_id
        order by a.place;
end
go

-- [file routines/retry_later.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.RetryLater
    @queue_name nvarchar(max),
    @claim_id bigint,
    @message_ids nvarchar(max) = null,
    @delay_seconds float = null,
    @error nvarchar(max) = null
as
begin
-- routine   RetryLater
-- version   1
-- purpose   Give messages back for another attempt after a delay, the queue's backoff unless delay_seconds is given; without an attempt left they are dead.
-- promise   P08 P10 P34 P37
-- locks     the part, shared; the claim row; then message, delayed, ready or dead rows, and for
--           cancelled messages as complete; rows of groups and of messages that wait, tried only;
--           new history rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @has_cancels bit;
    declare @max_attempts int;
    declare @history_days int;
    declare @worker_name nvarchar(400);
    declare @leased_at datetime2(6);
    declare @now datetime2(6);
    declare @asked table (
        message_id bigint not null,
        place      int not null,
        primary key (message_id, place)
    );
    declare @taken rowq.message_list;
    declare @ended rowq.message_list;
    declare @alive rowq.message_list;
    declare @worn rowq.message_list;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalCheckIds @message_ids;
            if @claim_id is null
                exec rowq.InternalRefuse N'claim_id is missing';
            if @delay_seconds not between 0 and 315360000
                exec rowq.InternalCheckRange N'delay_seconds', @delay_seconds, 0, 315360000;
            if @message_ids is not null
                insert into @asked (place, message_id)
                select cast(j.[key] as int), cast(j.value as bigint)
                from openjson(@message_ids) j;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @part_id output, @max_attempts = @max_attempts output,
                @history_days = @history_days output;
            exec rowq.InternalLockClaim
                @part_id, @claim_id, @message_ids, @has_cancels = @has_cancels output,
                @worker_name = @worker_name output, @leased_at = @leased_at output;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            delete l
            output deleted.message_id, deleted.lane, deleted.seq, deleted.attempt,
                   deleted.is_cancelled
            into @taken (message_id, lane, place, attempt, is_cancelled)
            from rowq.leased l with (rowlock, forceseek)
            where l.part_id = @part_id
              and l.claim_id = @claim_id
              and (
                  @message_ids is null
                  or exists (select 1 from @asked a where a.message_id = l.message_id)
              )
            option (loop join, maxdop 1, keepfixed plan);
            if @message_ids is null
                exec rowq.InternalDeleteClaim @part_id, @claim_id;
            else
                exec rowq.InternalDeleteEmptyClaim @part_id, @claim_id;
            if @has_cancels = 1
            begin
                delete j
                output deleted.message_id, deleted.lane, deleted.place, deleted.attempt
                into @ended (message_id, lane, place, attempt)
                from @taken j
                where j.is_cancelled = 1;
                exec rowq.InternalEndCancelled @part_id, @ended, @owns_transaction;
                if @history_days > 0
                    exec rowq.InternalPushHistory
                        @part_id, @claim_id, @worker_name, @leased_at, @ended, N'cancelled';
            end;

            -- A hash gives each message its own share of the jitter, and the same share each time
            -- the engine computes it: rand() would be one number for all rows, and newid() a new
            -- one each time.
            set @now = sysutcdatetime();
            insert into @alive (message_id, lane, place, attempt, due_at)
            select j.message_id, j.lane / 2 * 2 + 1, j.place, j.attempt,
                   dateadd(
                       microsecond, cast(round((h.delay - floor(h.delay)) * 1e6, 0) as int),
                       dateadd(second, cast(floor(h.delay) as int), @now)
                   )
            from @taken j
            inner join rowq.message m with (forceseek)
                on m.part_id = @part_id
               and m.message_id = j.message_id
               and j.attempt < coalesce(m.max_attempts, @max_attempts)
            inner join rowq.queue q on q.part_id = @part_id
            cross apply (
                select q.backoff_base_seconds
                       * power(q.backoff_factor, iif(j.attempt > 60, 60, j.attempt - 1))
            ) b (delay)
            cross apply (
                select cast(
                           substring(
                               hashbytes(N'SHA2_256', concat(@now, N' ', j.message_id)), 1, 6
                           ) as bigint
                       ) / 281474976710656e0
            ) s (share)
            cross apply (
                select coalesce(
                    @delay_seconds,
                    iif(b.delay > q.backoff_cap_seconds, q.backoff_cap_seconds, b.delay)
                    * (1 - q.backoff_jitter * s.share)
                )
            ) h (delay)
            option (loop join, force order, maxdop 1);
            insert into @worn (message_id, lane, place, attempt)
            select j.message_id, j.lane, j.place, j.attempt
            from @taken j
            where not exists (select 1 from @alive a where a.message_id = j.message_id);
            if exists (select 1 from @alive)
            begin
                exec rowq.InternalPushDelayed @part_id, @alive, @error;
                if @history_days > 0
                    exec rowq.InternalPushHistory
                        @part_id, @claim_id, @worker_name, @leased_at, @alive, N'retrying', @error;
            end;
            if exists (select 1 from @worn)
            begin
                exec rowq.InternalPushDead @part_id, @worn, @error, @owns_transaction;
                if @history_days > 0
                    exec rowq.InternalPushHistory
                        @part_id, @claim_id, @worker_name, @leased_at, @worn, N'dead', @error;
            end;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again. So does one that came to a group at the same moment as a producer.
            set @tries_left = iif(
                @owns_transaction = 1
                    and (
                        error_number() = 1205
                        or error_number() = 1222
                            and error_procedure() like N'%InternalTryEnterGroup'
                    ),
                @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
            delete from @asked;
            delete from @taken;
            delete from @ended;
            delete from @alive;
            delete from @worn;
        end catch;
    end;

    -- The result is all that the claim held, in the order of delivery, or the messages that were
    -- asked for, in the order of the list.
    if @message_ids is null
        select j.message_id,
               case
                   when j.is_ended = 1 then N'cancelled'
                   when r.message_id is null then N'dead'
                   else N'retrying'
               end as outcome,
               r.due_at
        from (
            select t.message_id, t.lane, t.place, 0 as is_ended
            from @taken t
            union all
            select e.message_id, e.lane, e.place, 1
            from @ended e
        ) j
        left join @alive r on r.message_id = j.message_id
        order by j.lane, j.place, j.message_id;
    else
        select a.message_id,
               case
                   when r.message_id is not null then N'retrying'
                   when j.message_id is not null then N'dead'
                   when e.message_id is not null then N'cancelled'
                   else N'stale'
               end as outcome,
               r.due_at
        from @asked a
        left join @taken j on j.message_id = a.message_id
        left join @alive r on r.message_id = a.message_id
        left join @ended e on e.message_id = a.message_id
        order by a.place;
end
go

-- [file routines/fail_now.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.FailNow
    @queue_name nvarchar(max),
    @claim_id bigint,
    @message_ids nvarchar(max) = null,
    @error nvarchar(max) = null
as
begin
-- routine   FailNow
-- version   1
-- purpose   Declare messages dead without another attempt.
-- promise   P08 P10 P34 P37
-- locks     the part, shared; the claim row; then dead, message and dedup rows, and for cancelled
--           messages as complete; rows of groups, tried only; new history rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    exec rowq.InternalGiveUpMessages
        @queue_name, @claim_id, @message_ids, N'dead', @error;
end
go

-- [file routines/release.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Release
    @queue_name nvarchar(max),
    @claim_id bigint,
    @message_ids nvarchar(max) = null
as
begin
-- routine   Release
-- version   1
-- purpose   Give messages back to the front of their priority without spending the attempt.
-- promise   P08 P34 P37
-- locks     the part, shared; the claim row; then new ready rows, and for cancelled messages as
--           complete; new history rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    exec rowq.InternalGiveUpMessages @queue_name, @claim_id, @message_ids, N'released';
end
go

-- [file routines/extend_lease.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.ExtendLease
    @queue_name nvarchar(max),
    @claim_id bigint,
    @lease_seconds int = null,
    @progress nvarchar(max) = null
as
begin
-- routine   ExtendLease
-- version   1
-- purpose   Heartbeat: hold all messages of a claim for lease_seconds from now; a lease is never shortened.
-- promise   P08 P34
-- locks     the claim row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set textsize 2147483647;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @default_seconds int;
    declare @held_until datetime2(6);
    declare @lease_until datetime2(6);
    declare @has_cancels bit;
    declare @cancel_ids nvarchar(max);
    -- The collation counts an emoji as one character.
    declare @text nvarchar(4000) = left(@progress collate Latin1_General_100_CI_AS_SC, 2000);

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            if @claim_id is null
                exec rowq.InternalRefuse N'claim_id is missing';
            if @lease_seconds not between 1 and 86400
                exec rowq.InternalCheckRange N'lease_seconds', @lease_seconds, 1, 86400;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalRequireQueue
                @queue_name, @part_id output, @lease_seconds = @default_seconds output;
            exec rowq.InternalLockClaim
                @part_id, @claim_id, null, @held_until output, @has_cancels output;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            set @lease_until = dateadd(
                second, coalesce(@lease_seconds, @default_seconds), sysutcdatetime()
            );
            if @lease_until < @held_until
                set @lease_until = @held_until;
            update c
            set lease_until = @lease_until,
                progress    = coalesce(@text, c.progress)
            from rowq.claim c with (rowlock, forceseek)
            where c.part_id = @part_id
              and c.claim_id = @claim_id;
            -- What a part of the claim has taken along with it is noted no more, so read the rows.
            set @cancel_ids = null;
            if @has_cancels = 1
                select @cancel_ids = iif(
                           count(*) = 0, null,
                           concat(
                               N'[', string_agg(cast(l.message_id as nvarchar(max)), N','), N']'
                           )
                       )
                from rowq.leased l with (forceseek)
                where l.part_id = @part_id
                  and l.claim_id = @claim_id
                  and l.is_cancelled = 1
                option (maxdop 1, keepfixed plan);

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;

    select @claim_id as claim_id, @lease_until as lease_until, @cancel_ids as cancel_ids;
end
go

-- [file routines/cancel.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Cancel
    @queue_name nvarchar(max),
    @message_ids nvarchar(max),
    @include_leased bit = 0
as
begin
-- routine   Cancel
-- version   1
-- purpose   Withdraw messages that no worker holds, dead ones too.
-- promise   P15 P34
-- locks     the part, shared; claim rows, if include_leased, and then those of leased; blocked,
--           delayed, dead, grouped and ready rows; locked ones are passed over; a token of each
--           group, tried; then as complete
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   a message that was retried or delayed is looked for among all ready ones of the queue
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @archive_days int;
    declare @noted_ids nvarchar(max);
    declare @rest_ids nvarchar(max);
    declare @cancelled_ids nvarchar(max);
    declare @unknown_ids nvarchar(max);
    declare @asked table (
        message_id bigint not null,
        place      int not null,
        primary key (message_id, place)
    );
    declare @outcomes table (
        message_id bigint not null primary key,
        outcome    nvarchar(20) not null
    );

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            if @message_ids is null
                exec rowq.InternalRefuse N'message_ids is missing';
            exec rowq.InternalCheckIds @message_ids;
            insert into @asked (place, message_id)
            select cast(j.[key] as int), cast(j.value as bigint)
            from openjson(@message_ids) j;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @part_id output, @archive_days = @archive_days output;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            set @noted_ids = null;
            set @cancelled_ids = null;
            set @rest_ids = @message_ids;
            if @include_leased = 1
            begin
                -- Look into the claims first: what is noted there is not looked for among the ready
                -- messages.
                exec rowq.InternalNoteCancels @part_id, @message_ids, @noted_ids output;
                insert into @outcomes (message_id, outcome)
                select cast(j.value as bigint), N'requested' from openjson(@noted_ids) j;
                select @rest_ids = N'[' + string_agg(cast(a.message_id as nvarchar(max)), N',')
                       + N']'
                from @asked a
                where not exists (select 1 from @outcomes o where o.message_id = a.message_id);
            end;
            if @rest_ids is not null
                exec rowq.InternalWithdraw
                    @part_id, @archive_days, @rest_ids, @owns_transaction, @cancelled_ids output;
            insert into @outcomes (message_id, outcome)
            select cast(j.value as bigint), N'cancelled' from openjson(@cancelled_ids) j;

            -- A message without a body is unknown, and so is one that is finished and not yet
            -- archived. Every other one that is left is in a worker's hands.
            select @rest_ids = N'[' + string_agg(cast(a.message_id as nvarchar(max)), N',') + N']'
            from @asked a
            where not exists (select 1 from @outcomes o where o.message_id = a.message_id);
            if @rest_ids is not null
            begin
                exec rowq.InternalUnknownOf @part_id, @rest_ids, @unknown_ids output;
                insert into @outcomes (message_id, outcome)
                select cast(j.value as bigint), N'not_found' from openjson(@unknown_ids) j;
            end;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again. So does one that came to a group at the same moment as a producer.
            set @tries_left = iif(
                @owns_transaction = 1
                    and (
                        error_number() = 1205
                        or error_number() = 1222
                            and error_procedure() like N'%InternalTryEnterGroup'
                    ),
                @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
            delete from @asked;
            delete from @outcomes;
        end catch;
    end;

    select a.message_id, coalesce(o.outcome, N'leased') as outcome
    from @asked a
    left join @outcomes o on o.message_id = a.message_id
    order by a.place;
end
go

-- [file routines/cancel_many.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.CancelMany
    @queue_name nvarchar(max),
    @message_type nvarchar(max) = null,
    @group_key nvarchar(max) = null,
    @header_name nvarchar(max) = null,
    @header_value nvarchar(max) = null,
    @enqueued_before datetime2(6) = null,
    @after_message_id bigint = 0,
    @max_messages int = 1000
as
begin
-- routine   CancelMany
-- version   1
-- purpose   Look at up to max_messages messages, in the order of their ids, and withdraw those that match every filter given and that no worker holds, dead ones too. At least one filter is required.
-- promise   P15
-- locks     message rows, shared while they are read, passing over locked ones; as cancel
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   a message that was retried or delayed is looked for among all ready ones of the queue
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @archive_days int;
    declare @last_id bigint;
    declare @message_ids nvarchar(max);
    declare @cancelled_ids nvarchar(max);
    declare @cancelled int;
    declare @seen table (
        message_id bigint not null primary key,
        is_wanted  bit not null
    );

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalCheckRange N'max_messages', @max_messages, 1, 10000, @is_required = 1;
            if iif(@header_name is null, 0, 1) <> iif(@header_value is null, 0, 1)
                exec rowq.InternalRefuse N'header_name and header_value are given together';
            if datalength(@header_name) not between 2 and 400
                or @header_name collate Latin1_General_100_BIN2 like N'%[^ -~]%'
                or charindex(N'"', @header_name) > 0
                or charindex(N'\', @header_name) > 0
                or left(@header_name, 1) = N'-'
                exec rowq.InternalRefuse
                    N'header_name must be 1 to 200 printable ASCII characters, no ", \, leading -';
            if @message_type is null and @group_key is null and @header_name is null
                and @enqueued_before is null
                exec rowq.InternalRefuse
                    N'a filter is missing: a type, a group, a header with its value, or a moment';

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @part_id output, @archive_days = @archive_days output;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            -- Equal texts may differ in trailing blanks, so compare their lengths, too. Openjson
            -- says of a value what it is: 1 is a string, 2 a number, 3 true or false.
            insert into @seen (message_id, is_wanted)
            select top (@max_messages) m.message_id,
                   iif(
                       (
                           @message_type is null
                           or m.message_type = @message_type
                              and datalength(m.message_type) = datalength(@message_type)
                       )
                       and (
                           @group_key is null
                           or m.group_key = @group_key
                              and datalength(m.group_key) = datalength(@group_key)
                       )
                       and (@enqueued_before is null or m.enqueued_at < @enqueued_before)
                       and (
                           @header_name is null
                           or exists (
                               select 1
                               from openjson(m.headers) h
                               where h.[key] = @header_name
                                 and datalength(h.[key]) = datalength(@header_name)
                                 and h.value collate Latin1_General_100_BIN2 = @header_value
                                 and datalength(h.value) = datalength(@header_value)
                                 and (
                                     h.[type] in (1, 3)
                                     or h.[type] = 2 and h.value not like N'%[^-0-9]%'
                                 )
                           )
                       ),
                       1, 0
                   )
            from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
            where m.part_id = @part_id
              and m.message_id > coalesce(@after_message_id, 0)
            order by m.message_id
            option (loop join, maxdop 1, keepfixed plan);
            select @last_id = iif(count(*) = @max_messages, max(s.message_id), null)
            from @seen s;
            delete from @seen where is_wanted = 0;

            -- What is finished and not yet archived would be looked for among all ready messages.
            if exists (select 1 from @seen)
                delete s
                from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
                inner join @seen s on s.message_id = f.message_id
                where f.part_id = @part_id
                option (hash join, force order, maxdop 1);
            set @cancelled_ids = null;
            if exists (select 1 from @seen)
            begin
                select @message_ids = N'[' + string_agg(cast(s.message_id as nvarchar(max)), N',')
                       + N']'
                from @seen s;
                exec rowq.InternalWithdraw
                    @part_id, @archive_days, @message_ids, @owns_transaction,
                    @cancelled_ids output;
            end;
            select @cancelled = count(*) from openjson(@cancelled_ids);

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again. So does one that came to a group at the same moment as a producer.
            set @tries_left = iif(
                @owns_transaction = 1
                    and (
                        error_number() = 1205
                        or error_number() = 1222
                            and error_procedure() like N'%InternalTryEnterGroup'
                    ),
                @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
            delete from @seen;
        end catch;
    end;

    select @cancelled as cancelled, @last_id as after_message_id;
end
go

-- [file routines/reset.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Reset
    @queue_name nvarchar(max),
    @message_ids nvarchar(max) = null,
    @max_messages int = 1000,
    @message_type nvarchar(max) = null,
    @died_before datetime2(6) = null
as
begin
-- routine   Reset
-- version   1
-- purpose   Make dead messages ready again, at the tail of their priority, with fresh attempts; null takes the oldest max_messages.
-- promise   P10 P12 P32
-- locks     the part, shared; dead rows, passing over locked ones; message rows, shared; dedup
--           and result rows; new ready rows; groups as enqueue
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @group_limit int;
    declare @now bigint;
    declare @asked table (
        message_id bigint not null,
        place      int not null,
        primary key (message_id, place)
    );
    -- holder is the unfinished message that has the dedup key: this one, or one with the same key.
    declare @keys table (
        message_id bigint not null primary key,
        key_bytes  varbinary(802) not null,
        holder     bigint null
    );
    declare @wanted table (message_id bigint not null primary key);
    declare @dead rowq.message_list;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalCheckIds @message_ids;
            exec rowq.InternalCheckRange N'max_messages', @max_messages, 1, 10000, @is_required = 1;
            if @message_ids is not null
                and (@message_type is not null or @died_before is not null)
                exec rowq.InternalRefuse
                    N'message_type and died_before go together with no message_ids';
            if @message_ids is not null
                insert into @asked (place, message_id)
                select cast(j.[key] as int), cast(j.value as bigint)
                from openjson(@message_ids) j;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @part_id output, @group_limit = @group_limit output;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            -- Find dead messages with locks that do not last, because a lock that is to last would
            -- stay on those that do not match, too. Equal texts may differ in trailing blanks, so
            -- compare their lengths, too.
            if @message_ids is null
                insert into @wanted (message_id)
                select top (@max_messages) d.message_id
                from rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
                where d.part_id = @part_id
                  and (@died_before is null or d.died_at < @died_before)
                  and (
                      @message_type is null
                      or exists (
                          select 1
                          from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
                          where m.part_id = @part_id
                            and m.message_id = d.message_id
                            and m.message_type = @message_type
                            and datalength(m.message_type) = datalength(@message_type)
                      )
                  )
                order by d.message_id
                option (loop join, maxdop 1);
            else
                insert into @wanted (message_id)
                select distinct a.message_id from @asked a;

            -- A message that has kept the token of its group goes on as if it had no group. Its row
            -- stays locked shared to the end of the transaction (repeatableread), so that nobody
            -- decides meanwhile that it is dead no more.
            insert into @dead (message_id, lane, place, attempt, group_key)
            select d.message_id, d.lane / 2 * 2 + 1, 0, 0,
                   iif(d.holds_group = 1, null, convert(varbinary(802), m.group_key + N'.'))
            from @wanted j
            inner join rowq.dead d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                on d.part_id = @part_id
               and d.message_id = j.message_id
            inner join rowq.message m with (rowlock, repeatableread, forceseek)
                on m.part_id = @part_id
               and m.message_id = j.message_id
            option (loop join, force order, maxdop 1);
            if @message_ids is null
                insert into @asked (place, message_id)
                select row_number() over (order by d.message_id), d.message_id
                from @dead d;

            -- A dedup key has one owner at a time, so a dead message whose key is taken stays dead.
            -- Insert all keys at once, in key order, so that two batches with the same keys cannot
            -- wait for each other. A key whose owner was finished in between is free again: try
            -- once more.
            insert into @keys (message_id, key_bytes)
            select m.message_id, convert(varbinary(802), m.dedup_key + N'.')
            from @dead j
            inner join rowq.message m with (forceseek)
                on m.part_id = @part_id
               and m.message_id = j.message_id
            where m.dedup_key is not null
            option (loop join, force order, maxdop 1);
            while exists (select 1 from @keys k where k.holder is null)
            begin
                insert into rowq.dedup with (rowlock) (part_id, dedup_key, message_id)
                select @part_id, h.key_bytes, h.message_id
                from (
                    select k.key_bytes, k.message_id, row_number() over (
                               partition by k.key_bytes
                               order by k.message_id
                           ) as place
                    from @keys k
                    where k.holder is null
                ) h
                where h.place = 1
                  and not exists (
                      select 1
                      from rowq.dedup d with (rowlock, readcommittedlock, forceseek)
                      where d.part_id = @part_id
                        and d.dedup_key = h.key_bytes
                  )
                order by h.key_bytes
                option (loop join, maxdop 1);
                update k
                set holder = d.message_id
                from @keys k
                inner join rowq.dedup d with (rowlock, readcommittedlock, forceseek)
                    on d.part_id = @part_id
                   and d.dedup_key = k.key_bytes
                where k.holder is null
                option (loop join, force order, maxdop 1);
            end;
            delete d
            from @dead d
            inner join @keys k on k.message_id = d.message_id
            where k.holder <> k.message_id;

            delete d
            from @dead j
            inner join rowq.dead d with (rowlock, forceseek)
                on d.part_id = @part_id
               and d.message_id = j.message_id
            option (loop join, force order, maxdop 1);
            delete r
            from @dead j
            inner join rowq.result r with (index (result_pk), rowlock, forceseek)
                on r.part_id = @part_id
               and r.message_id = j.message_id
            option (loop join, force order, maxdop 1);
            if exists (select 1 from @dead d where d.group_key is not null)
            begin
                set @now = datediff_big(microsecond, '19700101', sysutcdatetime());
                update d
                set place = @now + o.place
                from @dead d
                inner join (
                    select x.message_id,
                           row_number() over (order by x.lane, x.message_id) as place
                    from @dead x
                ) o on o.message_id = d.message_id;
                exec rowq.InternalJoinGroups @part_id, @group_limit, @dead;
                exec rowq.InternalNoteExpiry @part_id, @dead, @now;
            end;
            else
                exec rowq.InternalPushReady @part_id, @dead;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
            delete from @asked;
            delete from @keys;
            delete from @wanted;
            delete from @dead;
        end catch;
    end;

    select a.message_id,
           case
               when exists (select 1 from @dead d where d.message_id = a.message_id) then N'reset'
               when exists (select 1 from @keys k where k.message_id = a.message_id)
                   then N'duplicate'
               else N'not_found'
           end as outcome
    from @asked a
    order by a.place;
end
go

-- [file routines/discard_dead.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.DiscardDead
    @queue_name nvarchar(max),
    @message_ids nvarchar(max) = null,
    @max_messages int = 1000,
    @message_type nvarchar(max) = null,
    @died_before datetime2(6) = null
as
begin
-- routine   DiscardDead
-- version   1
-- purpose   Delete dead messages for good, the archive keeps none of them; null takes the oldest max_messages.
-- promise   P12 P22 P26
-- locks     the part, shared; dead rows, passing over locked ones; then as complete
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @removed int;
    declare @wanted table (message_id bigint not null primary key);
    declare @dead rowq.message_list;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalCheckIds @message_ids;
            exec rowq.InternalCheckRange N'max_messages', @max_messages, 1, 10000, @is_required = 1;
            if @message_ids is not null
                and (@message_type is not null or @died_before is not null)
                exec rowq.InternalRefuse
                    N'message_type and died_before go together with no message_ids';

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue @queue_name, @part_id output;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            -- Find dead messages with locks that do not last, because a lock that is to last would
            -- stay on those that do not match, too. Equal texts may differ in trailing blanks, so
            -- compare their lengths, too.
            if @message_ids is null
                insert into @wanted (message_id)
                select top (@max_messages) d.message_id
                from rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
                where d.part_id = @part_id
                  and (@died_before is null or d.died_at < @died_before)
                  and (
                      @message_type is null
                      or exists (
                          select 1
                          from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
                          where m.part_id = @part_id
                            and m.message_id = d.message_id
                            and m.message_type = @message_type
                            and datalength(m.message_type) = datalength(@message_type)
                      )
                  )
                order by d.message_id
                option (loop join, maxdop 1);
            else
                insert into @wanted (message_id)
                select distinct cast(j.value as bigint) from openjson(@message_ids) j;

            delete d
            output deleted.message_id, deleted.lane, 0, deleted.attempt,
                   iif(deleted.holds_group = 1, 0, 1)
            into @dead (message_id, lane, place, attempt, is_tokenless)
            from @wanted j
            inner join rowq.dead d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                on d.part_id = @part_id
               and d.message_id = j.message_id
            option (loop join, force order, maxdop 1);
            set @removed = @@rowcount;
            if @removed > 0
                exec rowq.InternalFinish @part_id, 0, @dead, N'cancelled', @owns_transaction;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again. So does one that came to a group at the same moment as a producer.
            set @tries_left = iif(
                @owns_transaction = 1
                    and (
                        error_number() = 1205
                        or error_number() = 1222
                            and error_procedure() like N'%InternalTryEnterGroup'
                    ),
                @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
            delete from @wanted;
            delete from @dead;
        end catch;
    end;

    select cast(@removed as bigint) as removed;
end
go

-- [file routines/create_schedule.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.CreateSchedule
    @queue_name nvarchar(max),
    @schedule_name nvarchar(max),
    @cron nvarchar(max) = null,
    @interval_seconds float = null,
    @time_zone nvarchar(max) = 'UTC',
    @body nvarchar(max) = null,
    @body_binary varbinary(max) = null,
    @message_type nvarchar(max) = null,
    @headers nvarchar(max) = null,
    @priority int = 5,
    @max_attempts int = null,
    @group_key nvarchar(max) = null,
    @missed nvarchar(max) = 'once',
    @overlap bit = 1,
    @starts_at datetime2(6) = null,
    @ends_at datetime2(6) = null
as
begin
-- routine   CreateSchedule
-- version   1
-- purpose   Let maintain enqueue a message at the times of a cron expression, or every so many seconds; an existing schedule of that name is left as it is.
-- promise   P15 P30 P31
-- locks     the part, shared; the new schedule row; waits for another session that creates it
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   a time zone may have the name that Windows has for it
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @max_body_length int;
    declare @schedule_key varbinary(402);
    declare @first_run_at datetime2(6);
    declare @next_run_at datetime2(6);
    declare @outcome nvarchar(20);

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @part_id output, @max_body_length = @max_body_length output;
            set @starts_at = coalesce(@starts_at, sysutcdatetime());
            exec rowq.InternalCheckSchedule
                @schedule_name, @cron, @interval_seconds, @time_zone, @missed, @starts_at,
                @ends_at, @message_type, @headers, @priority, @max_attempts, @group_key, @body,
                @body_binary, @max_body_length, @first_run_at output;
            set @schedule_key = convert(varbinary(402), @schedule_name + N'.');

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            set @outcome = N'created';
            set @next_run_at = @first_run_at;
            -- If another session has added the name meanwhile, this inserts no row and raises no
            -- error (ignore_dup_key).
            insert into rowq.schedule with (rowlock) (
                part_id, schedule_key, schedule_name, cron, interval_seconds, time_zone, missed,
                overlap, starts_at, ends_at, message_type, headers, priority, group_key,
                max_attempts, body, body_binary, next_run_at
            )
            select @part_id, @schedule_key, @schedule_name, @cron, @interval_seconds, @time_zone,
                   @missed, coalesce(@overlap, 1), @starts_at, @ends_at, @message_type, @headers,
                   @priority, @group_key, @max_attempts, @body, @body_binary, @first_run_at
            where not exists (
                select 1
                from rowq.schedule s with (rowlock, readcommittedlock, forceseek)
                where s.part_id = @part_id
                  and s.schedule_key = @schedule_key
            );
            if @@rowcount = 0
            begin
                -- It is null where the schedule was dropped a moment ago.
                set @outcome = N'exists';
                set @next_run_at = null;
                select @next_run_at = s.next_run_at
                from rowq.schedule s with (rowlock, readcommittedlock, forceseek)
                where s.part_id = @part_id
                  and s.schedule_key = @schedule_key;
            end;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;

    select cast(@schedule_name as nvarchar(200)) as schedule_name, @outcome as outcome,
           @next_run_at as next_run_at;
end
go

-- [file routines/alter_schedule.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.AlterSchedule
    @queue_name nvarchar(max),
    @schedule_name nvarchar(max),
    @cron nvarchar(max) = null,
    @interval_seconds float = null,
    @time_zone nvarchar(max) = null,
    @body nvarchar(max) = null,
    @body_binary varbinary(max) = null,
    @message_type nvarchar(max) = null,
    @headers nvarchar(max) = null,
    @priority int = null,
    @max_attempts int = null,
    @group_key nvarchar(max) = null,
    @missed nvarchar(max) = null,
    @overlap bit = null,
    @starts_at datetime2(6) = null,
    @ends_at datetime2(6) = null,
    @is_paused bit = null
as
begin
-- routine   AlterSchedule
-- version   1
-- purpose   Change a schedule, pause it or let it go on; null leaves a setting as it is. It counts anew from now: what it has missed is not made up for.
-- promise   P15 P31
-- locks     the part, shared; the schedule row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ702 RQ711
-- differs   a time zone may have the name that Windows has for it
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @begun int;
    declare @part_id int;
    declare @max_body_length int;
    declare @schedule_key varbinary(402);
    declare @next_run_at datetime2(6);
    -- One kind of time, or of body, takes the place of the other.
    declare @is_timed bit = iif(@cron is null and @interval_seconds is null, 0, 1);
    declare @has_body bit = iif(@body is null and @body_binary is null, 0, 1);
    -- What cannot run any more can still be paused.
    declare @only_pauses bit = iif(
        @is_paused = 1 and @cron is null and @interval_seconds is null and @time_zone is null
            and @body is null and @body_binary is null and @message_type is null
            and @headers is null and @priority is null and @max_attempts is null
            and @group_key is null and @missed is null and @overlap is null
            and @starts_at is null and @ends_at is null,
        1, 0
    );

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    begin try
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        if @owns_transaction = 0
            select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;

        if @owns_transaction = 1
            begin transaction;
        exec rowq.InternalEnterQueue
            @queue_name, @part_id output, @max_body_length = @max_body_length output;
        exec rowq.InternalRequireSchedule @part_id, @schedule_name, @schedule_key output;
        select @cron = iif(@is_timed = 1, @cron, s.cron),
               @interval_seconds = iif(@is_timed = 1, @interval_seconds, s.interval_seconds),
               @time_zone = coalesce(@time_zone, s.time_zone),
               @body = iif(@has_body = 1, @body, s.body),
               @body_binary = iif(@has_body = 1, @body_binary, s.body_binary),
               @message_type = coalesce(@message_type, s.message_type),
               @headers = coalesce(@headers, s.headers),
               @priority = coalesce(@priority, s.priority),
               @max_attempts = coalesce(@max_attempts, s.max_attempts),
               @group_key = coalesce(@group_key, s.group_key),
               @missed = coalesce(@missed, s.missed),
               @overlap = coalesce(@overlap, s.overlap),
               @starts_at = coalesce(@starts_at, s.starts_at),
               @ends_at = coalesce(@ends_at, s.ends_at),
               @is_paused = coalesce(@is_paused, s.is_paused)
        from rowq.schedule s with (forceseek)
        where s.part_id = @part_id
          and s.schedule_key = @schedule_key;
        if @only_pauses = 0
            exec rowq.InternalCheckSchedule
                @schedule_name, @cron, @interval_seconds, @time_zone, @missed, @starts_at,
                @ends_at, @message_type, @headers, @priority, @max_attempts, @group_key, @body,
                @body_binary, @max_body_length, @next_run_at output;
        if @is_paused = 1
            set @next_run_at = null;

        -- Now the call writes. If the client gives up half-way, the engine takes back the whole
        -- transaction (xact_abort), so that nobody can commit one half of a call.
        set xact_abort on;
        update s
        set cron             = @cron,
            interval_seconds = @interval_seconds,
            time_zone        = @time_zone,
            missed           = @missed,
            overlap          = @overlap,
            starts_at        = @starts_at,
            ends_at          = @ends_at,
            message_type     = @message_type,
            headers          = @headers,
            priority         = @priority,
            group_key        = @group_key,
            max_attempts     = @max_attempts,
            body             = @body,
            body_binary      = @body_binary,
            is_paused        = @is_paused,
            next_run_at      = @next_run_at,
            last_error       = null
        from rowq.schedule s with (rowlock, forceseek)
        where s.part_id = @part_id
          and s.schedule_key = @schedule_key;

        if @owns_transaction = 1
            commit transaction;
    end try
    begin catch
        -- The transaction of a caller is the caller's to end, and the engine has doomed it if
        -- the call had begun to write.
        if @owns_transaction = 1 and @@trancount > 0
            rollback transaction;

        -- The victim of a deadlock does not start again here, as others do: what was null has by
        -- now the value of a row that another session may have changed since.
        throw;
    end catch;

    select cast(@schedule_name as nvarchar(200)) as schedule_name, N'altered' as outcome,
           @next_run_at as next_run_at;
end
go

-- [file routines/drop_schedule.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.DropSchedule
    @queue_name nvarchar(max),
    @schedule_name nvarchar(max)
as
begin
-- routine   DropSchedule
-- version   1
-- purpose   Remove a schedule; the messages that it made stay.
-- promise   P15
-- locks     the part, shared; the schedule row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ702 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @schedule_key varbinary(402);

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue @queue_name, @part_id output;
            exec rowq.InternalRequireSchedule @part_id, @schedule_name, @schedule_key output;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            delete s
            from rowq.schedule s with (rowlock, forceseek)
            where s.part_id = @part_id
              and s.schedule_key = @schedule_key;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;

    select cast(@schedule_name as nvarchar(200)) as schedule_name, N'dropped' as outcome;
end
go

-- [file routines/run_schedule.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.RunSchedule
    @queue_name nvarchar(max),
    @schedule_name nvarchar(max)
as
begin
-- routine   RunSchedule
-- version   1
-- purpose   Enqueue the message of a schedule now, paused or not; its next tick stays as it is.
-- promise   P15
-- locks     the part, shared; the schedule row; as enqueue
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ702 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @schedule_key varbinary(402);
    declare @now datetime2(6);
    declare @message_id bigint;
    declare @outcome nvarchar(20);

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue @queue_name, @part_id output;
            exec rowq.InternalRequireSchedule @part_id, @schedule_name, @schedule_key output;
            exec rowq.InternalCheckTick @part_id, @schedule_key;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            set @now = sysutcdatetime();
            exec rowq.InternalSendTick
                @part_id, @schedule_key, @now, @message_id output, @outcome output;
            if @outcome = N'enqueued'
                update s
                set last_run_at     = @now,
                    last_message_id = @message_id
                from rowq.schedule s with (rowlock, forceseek)
                where s.part_id = @part_id
                  and s.schedule_key = @schedule_key;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;

    select @message_id as message_id, @outcome as outcome;
end
go

-- [file routines/list_schedules.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.ListSchedules
    @queue_name nvarchar(max) = null
as
begin
-- routine   ListSchedules
-- version   1
-- purpose   The schedules of one queue, or of all, without their bodies and headers.
-- promise   none
-- locks     rows, shared while they are read; none with row versions
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    declare @begun int;
    declare @part_id int;

    begin try
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        if @queue_name is not null
            exec rowq.InternalRequireQueue @queue_name, @part_id output;

        select q.queue_name, s.schedule_name, s.cron, s.interval_seconds, s.time_zone, s.is_paused,
               s.next_run_at, s.last_run_at, s.last_message_id, s.last_error, s.missed, s.overlap,
               s.starts_at, s.ends_at, s.message_type, cast(s.priority as int) as priority,
               cast(s.max_attempts as int) as max_attempts, s.group_key
        from rowq.queue q
        inner join rowq.schedule s on s.part_id = q.part_id
        where @part_id is null
           or q.part_id = @part_id
        order by q.queue_name, s.schedule_name
        option (loop join, maxdop 1, recompile);
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go

-- [file routines/next_ticks.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.NextTicks
    @cron nvarchar(max) = null,
    @interval_seconds float = null,
    @time_zone nvarchar(max) = 'UTC',
    @after datetime2(6) = null,
    @max_ticks int = 5
as
begin
-- routine   NextTicks
-- version   1
-- purpose   When a schedule with these times would run: a look before it is created. An interval counts from after.
-- promise   P31
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   a time zone may have the name that Windows has for it
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    declare @begun int;
    declare @windows_name nvarchar(128);
    declare @bits nvarchar(200);
    declare @tick datetime2(6) = coalesce(@after, sysutcdatetime());
    declare @starts_at datetime2(6) = @tick;
    declare @ticks table (tick datetime2(6) not null primary key);

    begin try
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        if @cron is null and @interval_seconds is null
            or @cron is not null and @interval_seconds is not null
            exec rowq.InternalRefuse N'a schedule has either cron or interval_seconds';
        exec rowq.InternalCheckRange N'interval_seconds', @interval_seconds, 1, 315360000;
        exec rowq.InternalCheckTimeZone @time_zone, @windows_name output;
        exec rowq.InternalCheckRange N'max_ticks', @max_ticks, 1, 1000, @is_required = 1;
        if @tick not between '20000101' and '21000101'
            exec rowq.InternalRefuse N'after must be a moment between the years 2000 and 2100';
        if @cron is not null
            exec rowq.InternalParseCron @cron, @bits output;

        while @max_ticks > 0
        begin
            exec rowq.InternalNextTick
                @bits, @interval_seconds, @windows_name, @starts_at, null, @tick, @tick output;
            if @tick is null
                break;
            insert into @ticks (tick) values (@tick);
            set @max_ticks -= 1;
        end;
        select t.tick from @ticks t order by t.tick;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go

-- [file routines/maintain.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Maintain
    @queue_name nvarchar(max) = null,
    @batch_size int = 1000
as
begin
-- routine   Maintain
-- version   1
-- purpose   All housekeeping of one queue, or of every queue: schedules, promote, reap, expiry, floors, archive, results, history. Call it about once a second.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P34 P36 P37
-- locks     a row of lane of each queue in turn, and due schedules, passed over when locked; as
--           enqueue for these, for 20 ms; as promote, reap, archive
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   a call without a name takes 1000 queues, at random if there are more; in an open
--           transaction the archive keeps its partitions, groups are neither opened nor closed,
--           and schedules with a group or without overlap are left to others
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    exec rowq.InternalMaintain @queue_name, @batch_size, @is_quiet = 0;
end
go

-- [file routines/reap.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Reap
    @queue_name nvarchar(max),
    @batch_size int = 1000
as
begin
-- routine   Reap
-- version   1
-- purpose   Take unfinished messages back from claims whose lease ran out.
-- promise   P03 P09 P34 P37
-- locks     the part, shared; expired claim rows, passing over locked ones; message rows, those of
--           cancelled messages tried only; rows of groups, tried only; new history rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @max_attempts int;
    declare @history_days int;
    declare @reaped int;
    declare @died int;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalCheckBatchSize @batch_size;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @part_id output, @max_attempts = @max_attempts output,
                @history_days = @history_days output;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            exec rowq.InternalReap
                @part_id, @max_attempts, @history_days, @batch_size, @owns_transaction,
                @reaped output, @died output;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again. So does one that came to a group at the same moment as a producer.
            set @tries_left = iif(
                @owns_transaction = 1
                    and (
                        error_number() = 1205
                        or error_number() = 1222
                            and error_procedure() like N'%InternalTryEnterGroup'
                    ),
                @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;

    select @reaped as reaped, @died as died;
end
go

-- [file routines/promote.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Promote
    @queue_name nvarchar(max),
    @batch_size int = 1000
as
begin
-- routine   Promote
-- version   1
-- purpose   Make delayed messages ready whose time has come.
-- promise   P11
-- locks     the part, shared; delayed rows, passing over locked ones; new ready rows; rows of
--           groups, tried, and waited for a tenth of a second at most
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   in the caller's transaction those that are to join a group are left to others
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @promoted int;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalCheckBatchSize @batch_size;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue @queue_name, @part_id output;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            exec rowq.InternalPromote @part_id, @batch_size, @owns_transaction, @promoted output;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again. So does one that came to a group at the same moment as a producer.
            set @tries_left = iif(
                @owns_transaction = 1
                    and (
                        error_number() = 1205
                        or error_number() = 1222
                            and error_procedure() like N'%InternalTryEnterGroup'
                    ),
                @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;

    select @promoted as promoted;
end
go

-- [file routines/archive.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Archive
    @queue_name nvarchar(max),
    @batch_size int = 1000
as
begin
-- routine   Archive
-- version   1
-- purpose   Move finished messages of a queue with archive_days above 0 to the archive.
-- promise   P19
-- locks     finished rows, passing over locked ones; message rows; new archive rows
-- commits   where the caller has no transaction, after each 1000 messages; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @step int;
    declare @done int;
    declare @archived int = 0;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalCheckBatchSize @batch_size;
            exec rowq.InternalRequireQueue @queue_name, @part_id output;
            if @owns_transaction = 1
                exec rowq.InternalOpenDays @part_id;
            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            while @archived < @batch_size
            begin
                set @step = iif(@batch_size - @archived < 1000, @batch_size - @archived, 1000);
                if @owns_transaction = 1
                    begin transaction;
                exec rowq.InternalArchive @part_id, @step, @done output;
                if @owns_transaction = 1
                    commit transaction;
                set @archived += @done;
                if @done < @step
                    break;
            end;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;

    select @archived as archived;
end
go

-- [file routines/purge_archive.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.PurgeArchive
    @queue_name nvarchar(max),
    @batch_size int = 1000
as
begin
-- routine   PurgeArchive
-- version   1
-- purpose   Delete archived messages older than the queue's archive_days and attempts older than its history_days, and drop partitions that no queue needs.
-- promise   P19 P37
-- locks     archive and history rows, passing over locked ones; the archive, for a moment; a row of
--           lane, tried
-- commits   where the caller has no transaction, after each 1000 messages; never the caller's
-- errors    RQ701 RQ711
-- differs   in an open transaction the archive keeps its partitions
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @part_id int;
    declare @archive_days int;
    declare @history_days int;
    declare @before datetime2(6);
    declare @step int;
    declare @done int;
    declare @purged int = 0;
    declare @attempts int = 0;
    declare @dropped int = 0;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalCheckBatchSize @batch_size;
            exec rowq.InternalRequireQueue
                @queue_name, @part_id output, @archive_days = @archive_days output,
                @history_days = @history_days output;
            if @owns_transaction = 1
                exec rowq.InternalDropDays @dropped output;
            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            set @before = dateadd(day, -@archive_days, sysutcdatetime());
            while @purged < @batch_size
            begin
                set @step = iif(@batch_size - @purged < 1000, @batch_size - @purged, 1000);
                exec rowq.InternalPurgeArchive @part_id, @before, @step, @done output;
                set @purged += @done;
                if @done < @step
                    break;
            end;
            while @attempts < @batch_size
            begin
                set @step = iif(@batch_size - @attempts < 1000, @batch_size - @attempts, 1000);
                exec rowq.InternalPurgeHistory
                    @part_id, @history_days, @step, @owns_transaction, @done output;
                set @attempts += @done;
                if @done < @step
                    break;
            end;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;

    select @purged + @attempts as purged, @dropped as partitions_dropped;
end
go

-- [file routines/queue_stats.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.QueueStats
    @queue_name nvarchar(max) = null,
    @max_count int = 100000
as
begin
-- routine   QueueStats
-- version   1
-- purpose   Counts, age and settings of one queue or all.
-- promise   none
-- locks     rows, shared while they are read, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   messages that another session has locked at this moment are not counted
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    declare @begun int;
    declare @part_id int;

    begin try
        exec rowq.InternalCheckRange N'max_count', @max_count, 1, 100000000, @is_required = 1;
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        if @queue_name is not null
            exec rowq.InternalRequireQueue @queue_name, @part_id output;

        -- Count from the first row and not from the floor, so that messages that were committed
        -- late count too.
        select q.queue_name, cast(iif(q.paused_at is null, 0, 1) as bit) as is_paused,
               (
                   select count_big(*)
                   from (
                       select top (@max_count) 1 as one
                       from rowq.ready t with (rowlock, readpast, readcommittedlock, forceseek)
                       where t.part_id = q.part_id
                   ) h
               ) as ready,
               (
                   select count_big(*)
                   from (
                       select top (@max_count) 1 as one
                       from rowq.delayed t with (rowlock, readpast, readcommittedlock, forceseek)
                       where t.part_id = q.part_id
                   ) h
               ) as delayed,
               (
                   select count_big(*)
                   from (
                       select top (@max_count) 1 as one
                       from rowq.leased t with (rowlock, readpast, readcommittedlock, forceseek)
                       where t.part_id = q.part_id
                   ) h
               ) as leased,
               (
                   select count_big(*)
                   from (
                       select top (@max_count) 1 as one
                       from rowq.dead t with (rowlock, readpast, readcommittedlock, forceseek)
                       where t.part_id = q.part_id
                   ) h
               ) as dead,
               (
                   select count_big(*)
                   from (
                       select top (@max_count) w.one
                       from (
                           select 1 as one
                           from rowq.grouped t
                               with (rowlock, readpast, readcommittedlock, forceseek)
                           where t.part_id = q.part_id
                           union all
                           select 1 as one
                           from rowq.blocked t
                               with (rowlock, readpast, readcommittedlock, forceseek)
                           where t.part_id = q.part_id
                       ) w
                   ) h
               ) as blocked,
               datediff_big(microsecond, o.enqueued_at, sysutcdatetime()) / 1e6
                   as oldest_ready_seconds,
               q.lease_seconds, cast(q.max_attempts as int) as max_attempts, q.backoff_base_seconds,
               q.backoff_factor, q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
               q.max_body_length, cast(q.group_limit as int) as group_limit, q.group_after_dead,
               q.group_pause_seconds, q.max_leased, q.rate_limit, q.rate_seconds,
               q.result_seconds, q.history_days
        from rowq.queue q
        -- top keeps this an apply for each queue: as a join it would have nothing to seek by.
        outer apply (
            select top (1) m.enqueued_at
            from rowq.lane l with (readuncommitted, forceseek)
            cross apply (
                select top (1) r.message_id
                from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
                where r.part_id = l.part_id
                  and r.lane = l.lane
                  and r.seq >= l.floor
                order by r.seq, r.message_id
            ) h
            inner join rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
                on m.part_id = l.part_id
               and m.message_id = h.message_id
            where l.part_id = q.part_id
              and l.lane >= 0
              and l.is_open = 1
            order by m.enqueued_at
        ) o
        where @part_id is null
           or q.part_id = @part_id
        order by q.queue_name
        option (loop join, maxdop 1, recompile);
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go

-- [file routines/get_message.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.GetMessage
    @queue_name nvarchar(max),
    @message_id bigint
as
begin
-- routine   GetMessage
-- version   1
-- purpose   Where a message is and everything about it; no row when rowq does not know it.
-- promise   P20
-- locks     rows, shared while they are read, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   what another open transaction has changed is not seen until it ends
    set nocount on;
    set rowcount 0;
    set textsize 2147483647;
    set xact_abort off;
    declare @begun int;
    declare @part_id int;
    declare @max_attempts int;
    declare @enqueued_at datetime2(6);
    declare @due_at datetime2(6);
    declare @state nvarchar(20);
    declare @lane smallint;
    declare @attempt smallint;
    declare @claim_id bigint;
    declare @worker_name nvarchar(400);
    declare @lease_until datetime2(6);
    declare @finished_at datetime2(6);
    declare @group_key nvarchar(400);
    declare @waits_for bigint;
    declare @progress nvarchar(4000);

    begin try
        if @message_id is null
            exec rowq.InternalRefuse N'message_id is missing';
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue
            @queue_name, @part_id output, @max_attempts = @max_attempts output;

        select @enqueued_at = m.enqueued_at, @due_at = m.due_at, @group_key = m.group_key
        from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
        where m.part_id = @part_id
          and m.message_id = @message_id;

        if @enqueued_at is not null
        begin
            exec rowq.InternalLocateMessages
                @part_id, @message_id, @enqueued_at, @group_key, @due_at output, @state output,
                @lane output, @attempt output, @claim_id output, @worker_name output,
                @lease_until output, @finished_at output, @waits_for output, @progress output;
            select m.message_id, @state as state, cast(@lane / 2 as int) as priority,
                   cast(@attempt as int) as attempt,
                   cast(coalesce(m.max_attempts, @max_attempts) as int) as max_attempts,
                   m.message_type, m.headers, m.body, m.body_binary, m.dedup_key, m.enqueued_at,
                   @due_at as due_at, @claim_id as claim_id, @worker_name as worker_name,
                   @lease_until as lease_until, @finished_at as finished_at, m.last_error,
                   m.group_key, @waits_for as waits_for, m.expires_at,
                   @progress as progress
            from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
            where m.part_id = @part_id
              and m.message_id = @message_id;
        end;
        else
            select a.message_id, a.state, cast(a.lane / 2 as int) as priority,
                   cast(a.attempt as int) as attempt, cast(null as int) as max_attempts,
                   a.message_type, a.headers, a.body, a.body_binary, a.dedup_key, a.enqueued_at,
                   cast(null as datetime2(6)) as due_at, cast(null as bigint) as claim_id,
                   cast(null as nvarchar(400)) as worker_name,
                   cast(null as datetime2(6)) as lease_until, a.finished_at,
                   cast(null as nvarchar(4000)) as last_error, a.group_key,
                   cast(null as bigint) as waits_for, cast(null as datetime2(6)) as expires_at,
                   cast(null as nvarchar(4000)) as progress
            from rowq.archived a
                with (index (archived_message_ix), rowlock, readpast, readcommittedlock)
            where a.part_id = @part_id
              and a.message_id = @message_id;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go

-- [file routines/find_message.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.FindMessage
    @queue_name nvarchar(max),
    @dedup_key nvarchar(max)
as
begin
-- routine   FindMessage
-- version   1
-- purpose   Find the unfinished message that has a dedup key, and return what get_message does.
-- promise   P12 P20
-- locks     rows, shared while they are read, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   what another open transaction has changed is not seen until it ends; a message that
--           ends while it is looked for may be returned as one that has ended
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    declare @begun int;
    declare @part_id int;
    declare @key_bytes varbinary(802);
    -- No message has the id 0.
    declare @message_id bigint = 0;

    begin try
        if @dedup_key is null
            exec rowq.InternalRefuse N'dedup_key is missing';
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @part_id output;

        -- A longer text is no key of a message, but the conversion below would cut it off, and it
        -- could look like one.
        if datalength(@dedup_key) <= 800
        begin
            set @key_bytes = convert(varbinary(802), @dedup_key + N'.');
            select @message_id = d.message_id
            from rowq.dedup d with (rowlock, readpast, readcommittedlock, forceseek)
            where d.part_id = @part_id
              and d.dedup_key = @key_bytes;
        end;
        exec rowq.GetMessage @queue_name, @message_id;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go

-- [file routines/get_result.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.GetResult
    @queue_name nvarchar(max),
    @message_id bigint
as
begin
-- routine   GetResult
-- version   1
-- purpose   How a message has ended, and its result; of one that has not ended its state; no row when rowq does not know it.
-- promise   P32
-- locks     rows, shared while they are read, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that another open transaction is moving or ending is leased until that ends
    set nocount on;
    set rowcount 0;
    set textsize 2147483647;
    set xact_abort off;
    declare @begun int;
    declare @part_id int;
    declare @state nvarchar(20);
    declare @finished_at datetime2(6);
    declare @result nvarchar(max);
    declare @last_error nvarchar(4000);

    begin try
        if @message_id is null
            exec rowq.InternalRefuse N'message_id is missing';
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @part_id output;
        exec rowq.InternalReadResult
            @part_id, @message_id, @state output, @finished_at output, @result output,
            @last_error output;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;

    select @message_id as message_id, @state as state, @finished_at as finished_at,
           @result as result, @last_error as last_error
    where @state is not null;
end
go

-- [file routines/wait_for_result.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.WaitForResult
    @queue_name nvarchar(max),
    @message_id bigint,
    @wait_seconds float = 20
as
begin
-- routine   WaitForResult
-- version   1
-- purpose   Do what get_result does, but wait until the message has ended or the time is up; the queue must keep results.
-- promise   P17 P32
-- locks     rows, shared while they are read, passing over locked ones; none while it waits
-- commits   after each look, so that no lock is held while it waits
-- errors    RQ701 RQ711 RQ713
-- differs   the row comes as one JSON object, in a result set of one column
    set nocount on;
    set rowcount 0;
    set textsize 2147483647;
    set xact_abort off;
    declare @until datetime2(6);
    declare @pause_ms int;
    declare @pause char(12);
    declare @answer nvarchar(max);

    exec rowq.InternalCheckRange N'wait_seconds', @wait_seconds, 0, 3600, @is_required = 1;
    -- Bit 2 of the options is implicit_transactions: then the first look would begin a transaction
    -- of the caller's.
    if @@trancount > 0 or @@options & 2 = 2
        throw 52713, N'RQ713 wrong_transaction_state: wait_for_result commits while it waits', 1;
    set @until = dateadd(
        millisecond, cast(round(@wait_seconds * 1000, 0) as int), sysutcdatetime()
    );

    begin try
        set transaction isolation level read committed;
        while 1 = 1
        begin
            exec rowq.InternalPollResult
                @queue_name, @message_id, @until, @pause_ms output, @answer output;
            if @pause_ms is null
                break;
            set @pause = concat(N'00:00:00.', right(concat(N'00', @pause_ms), 3));
            waitfor delay @pause;
        end;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;

    select @answer as answer;
end
go

-- [file routines/get_history.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.GetHistory
    @queue_name nvarchar(max),
    @message_id bigint
as
begin
-- routine   GetHistory
-- version   1
-- purpose   The attempts of a message: those that have ended within the queue's history_days, oldest first, then the present lease. A lease that ran out is lease_expired, also where no attempt was left; no row when rowq knows of none.
-- promise   P37
-- locks     rows, shared while they are read, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   what another open transaction has changed is not seen until it ends: meanwhile a lease
--           that it ends or extends is left out
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    declare @begun int;
    declare @part_id int;
    declare @enqueued_at datetime2(6);
    declare @due_at datetime2(6);
    declare @group_key nvarchar(400);
    declare @state nvarchar(20);
    declare @lane smallint;
    declare @attempt smallint;
    declare @claim_id bigint;
    declare @worker_name nvarchar(400);
    declare @leased_at datetime2(6);
    declare @lease_until datetime2(6);
    declare @finished_at datetime2(6);
    declare @waits_for bigint;
    declare @progress nvarchar(4000);

    begin try
        if @message_id is null
            exec rowq.InternalRefuse N'message_id is missing';
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @part_id output;

        -- Look for the present lease first: an attempt that ends between the looks is in the
        -- history then, and is left out where it is still taken for a lease.
        select @enqueued_at = m.enqueued_at, @due_at = m.due_at, @group_key = m.group_key
        from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
        where m.part_id = @part_id
          and m.message_id = @message_id;
        if @enqueued_at is not null
            exec rowq.InternalLocateMessages
                @part_id, @message_id, @enqueued_at, @group_key, @due_at output, @state output,
                @lane output, @attempt output, @claim_id output, @worker_name output,
                @lease_until output, @finished_at output, @waits_for output, @progress output,
                @leased_at output;

        select cast(a.attempt as int) as attempt, a.worker_name, a.leased_at, a.ended_at,
               a.outcome, a.error
        from (
            select h.attempt, h.worker_name, h.leased_at, h.ended_at, h.outcome, h.error,
                   h.claim_id
            from rowq.history h
                with (index (history_message_ix), rowlock, readpast, readcommittedlock, forceseek)
            where h.part_id = @part_id
              and h.message_id = @message_id
            union all
            select @attempt, @worker_name, @leased_at, cast(null as datetime2(6)),
                   cast(null as nvarchar(20)), cast(null as nvarchar(4000)), @claim_id
            where @claim_id is not null
              and not exists (
                  select 1
                  from rowq.history h
                      with (
                          index (history_message_ix), rowlock, readpast, readcommittedlock,
                          forceseek
                      )
                  where h.part_id = @part_id
                    and h.message_id = @message_id
                    and h.claim_id = @claim_id
              )
        ) a
        order by iif(a.ended_at is null, 1, 0), a.ended_at, a.claim_id
        option (loop join, maxdop 1);
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go

-- [file routines/list_dead.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.ListDead
    @queue_name nvarchar(max),
    @after_message_id bigint = 0,
    @max_messages int = 100,
    @before_message_id bigint = null,
    @message_type nvarchar(max) = null
as
begin
-- routine   ListDead
-- version   1
-- purpose   Dead messages, without their bodies, in the order of their ids, or backwards before one; of one type only, if given.
-- promise   P10
-- locks     dead and message rows, shared while they are read, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set textsize 2147483647;
    set xact_abort off;
    declare @begun int;
    declare @part_id int;

    begin try
        exec rowq.InternalCheckRange N'max_messages', @max_messages, 1, 10000, @is_required = 1;
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @part_id output;

        -- Equal texts may differ in trailing blanks, so compare their lengths, too.
        if @before_message_id is null
            select top (@max_messages) d.message_id, cast(d.lane / 2 as int) as priority,
                   cast(d.attempt as int) as attempt, m.message_type, m.enqueued_at, d.died_at,
                   m.last_error
            from rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
            inner join rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
                on m.part_id = @part_id
               and m.message_id = d.message_id
            where d.part_id = @part_id
              and d.message_id > coalesce(@after_message_id, 0)
              and (
                  @message_type is null
                  or m.message_type = @message_type
                  and datalength(m.message_type) = datalength(@message_type)
              )
            order by d.message_id
            option (loop join, force order, maxdop 1);
        else
            select top (@max_messages) d.message_id, cast(d.lane / 2 as int) as priority,
                   cast(d.attempt as int) as attempt, m.message_type, m.enqueued_at, d.died_at,
                   m.last_error
            from rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
            inner join rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
                on m.part_id = @part_id
               and m.message_id = d.message_id
            where d.part_id = @part_id
              and d.message_id > coalesce(@after_message_id, 0)
              and d.message_id < @before_message_id
              and (
                  @message_type is null
                  or m.message_type = @message_type
                  and datalength(m.message_type) = datalength(@message_type)
              )
            order by d.message_id desc
            option (loop join, force order, maxdop 1);
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go

-- [file routines/list_claims.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.ListClaims
    @queue_name nvarchar(max) = null,
    @after_claim_id bigint = 0,
    @max_claims int = 100
as
begin
-- routine   ListClaims
-- version   1
-- purpose   Who is at work on what: the claims of one queue or all, in the order of their ids.
-- promise   none
-- locks     claim and leased rows, shared while they are read, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a claim that was committed late is listed once maintain has corrected its floor; one
--           that another session has locked at this moment is left out
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    declare @begun int;
    declare @part_id int;

    begin try
        exec rowq.InternalCheckRange N'max_claims', @max_claims, 1, 10000, @is_required = 1;
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        if @queue_name is not null
            exec rowq.InternalRequireQueue @queue_name, @part_id output;

        select top (@max_claims) q.queue_name, c.claim_id, c.worker_name,
               (
                   select count(*)
                   from (
                       select top (1000) 1 as one
                       from rowq.leased l with (rowlock, readpast, readcommittedlock, forceseek)
                       where l.part_id = q.part_id
                         and l.claim_id = c.claim_id
                   ) h
               ) as message_count,
               c.lease_until,
               datediff_big(microsecond, sysutcdatetime(), c.lease_until) / 1e6
                   as lease_left_seconds
        from rowq.queue q
        inner join rowq.lane f with (readuncommitted, forceseek)
            on f.part_id = q.part_id
           and f.lane = -1
        -- top keeps this an apply for each queue, which gives a page at most: no more than these
        -- are put in order. It keeps the count above one, too, which else has nothing to seek by; a
        -- claim has no more messages.
        cross apply (
            select top (@max_claims) k.claim_id, k.worker_name, k.lease_until
            from rowq.claim k with (rowlock, readpast, readcommittedlock, forceseek)
            where k.part_id = q.part_id
              and k.claim_id >= f.floor
              and k.claim_id > coalesce(@after_claim_id, 0)
            order by k.claim_id
        ) c
        where @part_id is null
           or q.part_id = @part_id
        order by c.claim_id
        option (loop join, maxdop 1, recompile);
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go

-- [file routines/list_delayed.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.ListDelayed
    @queue_name nvarchar(max),
    @after_due_at datetime2(6) = null,
    @after_message_id bigint = 0,
    @max_messages int = 100
as
begin
-- routine   ListDelayed
-- version   1
-- purpose   Messages that wait for their time, without their bodies, in the order in which they become due.
-- promise   P11
-- locks     delayed and message rows, shared while they are read, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that was committed late is listed once maintain has corrected its floor
    set nocount on;
    set rowcount 0;
    set textsize 2147483647;
    set xact_abort off;
    declare @begun int;
    declare @part_id int;
    declare @floor bigint;
    declare @from datetime2(6);
    declare @after bigint = coalesce(@after_message_id, 0);
    declare @rest int;
    declare @page table (
        due_at     datetime2(6) not null,
        message_id bigint not null,
        lane       smallint not null,
        attempt    smallint not null,
        primary key (due_at, message_id)
    );

    begin try
        exec rowq.InternalCheckRange N'max_messages', @max_messages, 1, 10000, @is_required = 1;
        if @after_due_at is null and @after <> 0
            exec rowq.InternalRefuse N'after_message_id goes together with after_due_at';
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @part_id output;

        -- Begin no sooner than where the first live row may be, beyond the ghosts.
        select @floor = l.floor
        from rowq.lane l with (readuncommitted, forceseek)
        where l.part_id = @part_id
          and l.lane = -2;
        exec rowq.InternalFromMicroseconds @floor, @from output;
        if @after_due_at >= @from
            set @from = @after_due_at;
        else
            set @after = 0;

        -- Two seeks, because one for both would read all that is due at the same moment before the
        -- place to go on from.
        insert into @page (due_at, message_id, lane, attempt)
        select top (@max_messages) d.due_at, d.message_id, d.lane, d.attempt
        from rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
        where d.part_id = @part_id
          and d.due_at = @from
          and d.message_id > @after
        order by d.message_id
        option (maxdop 1);
        set @rest = @max_messages - @@rowcount;
        if @rest > 0
            insert into @page (due_at, message_id, lane, attempt)
            select top (@rest) d.due_at, d.message_id, d.lane, d.attempt
            from rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
            where d.part_id = @part_id
              and d.due_at > @from
            order by d.due_at, d.message_id
            option (maxdop 1);
        select d.message_id, cast(d.lane / 2 as int) as priority,
               cast(d.attempt as int) as attempt, m.message_type, d.due_at, m.last_error
        from @page d
        inner join rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
            on m.part_id = @part_id
           and m.message_id = d.message_id
        order by d.due_at, d.message_id
        option (loop join, force order, maxdop 1);
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go

-- [file routines/list_topics.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.ListTopics
    @queue_name nvarchar(max) = null
as
begin
-- routine   ListTopics
-- version   1
-- purpose   The patterns of one queue or all, in the order of the queues' names.
-- promise   P35
-- locks     rows, shared while they are read; none with row versions
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    declare @begun int;
    declare @part_id int;

    begin try
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        if @queue_name is not null
            exec rowq.InternalRequireQueue @queue_name, @part_id output;

        select q.queue_name, b.topic_pattern
        from rowq.queue q
        inner join rowq.topic_binding b on b.part_id = q.part_id
        where @part_id is null
           or q.part_id = @part_id
        order by q.queue_name, b.topic_pattern
        option (loop join, maxdop 1, recompile);
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go

-- [file routines/health.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Health
as
begin
-- routine   Health
-- version   1
-- purpose   Report what needs attention: who holds back clean-up, overdue messages, expired leases, dead messages, a sequence behind its data.
-- promise   none
-- locks     rows, shared while they are read, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   the check of the horizon is this engine's; sequences cannot fall behind the data
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    declare @begun int;
    declare @seconds float;
    declare @detail nvarchar(500);
    declare @now datetime2(6) = sysutcdatetime();

    begin try
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalHealthServer @seconds output, @detail output;

        select c.check_name, c.queue_name,
               case
                   when c.value >= c.critical then N'critical'
                   when c.value >= c.warning then N'warning'
                   else N'ok'
               end as status,
               c.value, c.detail
        from (
            select N'clean_up_horizon' as check_name, cast(null as nvarchar(200)) as queue_name,
                   @seconds as value, 300 as warning, 3600 as critical, @detail as detail
            union all
            select v.check_name, q.queue_name, cast(v.value as float), v.warning, v.critical,
                   v.detail
            from rowq.queue q
            -- top keeps this an apply for each queue: as a join it would have nothing to seek by.
            outer apply (
                select top (1) m.enqueued_at
                from rowq.lane l with (readuncommitted, forceseek)
                cross apply (
                    select top (1) r.message_id
                    from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
                    where r.part_id = l.part_id
                      and r.lane = l.lane
                      and r.seq >= l.floor
                    order by r.seq, r.message_id
                ) h
                inner join rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
                    on m.part_id = l.part_id
                   and m.message_id = h.message_id
                where l.part_id = q.part_id
                  and l.lane >= 0
                  and l.is_open = 1
                order by m.enqueued_at
            ) o
            outer apply (
                select count_big(*) as messages
                from (
                    select top (1000) 1 as one
                    from rowq.dead t with (rowlock, readpast, readcommittedlock, forceseek)
                    where t.part_id = q.part_id
                ) h
            ) b
            outer apply (
                select top (1) d.due_at
                from rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
                where d.part_id = q.part_id
                  and d.due_at <= @now
                order by d.due_at, d.message_id
            ) d
            outer apply (
                select top (1) e.lease_until
                from rowq.claim e with (rowlock, readpast, readcommittedlock, forceseek)
                where e.part_id = q.part_id
                  and e.lease_until <= @now
                order by e.lease_until
            ) e
            outer apply (
                select top (1) r.due_at
                from rowq.recheck r with (rowlock, readpast, readcommittedlock, forceseek)
                where r.part_id = q.part_id
                  and r.due_at <= @now
                order by r.due_at, r.recheck_id
            ) g
            outer apply (
                select count_big(*) as messages
                from (
                    select top (1000) 1 as one
                    from (
                        select top (10000) t.message_id
                        from rowq.dead t with (rowlock, readpast, readcommittedlock, forceseek)
                        where t.part_id = q.part_id
                        order by t.message_id desc
                    ) n
                    inner join rowq.successor s with (rowlock, readpast, readcommittedlock)
                        on s.part_id = q.part_id
                       and s.predecessor_id = n.message_id
                    inner join rowq.blocked x with (rowlock, readpast, readcommittedlock)
                        on x.part_id = q.part_id
                       and x.message_id = s.message_id
                ) h
            ) w
            outer apply (
                select top (1) s.next_run_at
                from rowq.schedule s with (rowlock, readpast, readcommittedlock, forceseek)
                where s.part_id = q.part_id
                  and s.next_run_at <= @now
                order by s.next_run_at
            ) s
            outer apply (
                select count_big(*) as schedules
                from rowq.schedule f with (rowlock, readpast, readcommittedlock, forceseek)
                where f.part_id = q.part_id
                  and f.last_error is not null
            ) f
            outer apply (
                select top (1) x.expires_at
                from rowq.expiry x with (rowlock, readpast, readcommittedlock, forceseek)
                where x.part_id = q.part_id
                  and x.expires_at <= @now
                order by x.expires_at, x.expiry_id
            ) y
            outer apply (
                select top (1) x.finished_at
                from rowq.result x
                    with (
                        index (result_finished_ix), rowlock, readpast, readcommittedlock, forceseek
                    )
                where x.part_id = q.part_id
                order by x.finished_at
            ) k
            -- Begin at the floor, beyond what was purged; it becomes a moment as in
            -- InternalFromMicroseconds.
            outer apply (
                select a.ended_at
                from rowq.lane l with (readuncommitted, forceseek)
                cross apply (
                    select top (1) h.ended_at
                    from rowq.history h
                        with (index (history_pk), rowlock, readpast, readcommittedlock, forceseek)
                    where h.part_id = l.part_id
                      and h.ended_at >= dateadd(
                          microsecond, cast(l.floor % 1000000 as int),
                          dateadd(
                              second, cast(l.floor / 1000000 % 86400 as int),
                              dateadd(
                                  day, cast(l.floor / 1000000 / 86400 as int),
                                  cast('19700101' as datetime2(6))
                              )
                          )
                      )
                    order by h.ended_at, h.message_id, h.claim_id
                ) a
                where l.part_id = q.part_id
                  and l.lane = -10
            ) i
            cross apply (
                values
                    (
                        N'oldest_ready',
                        coalesce(datediff_big(microsecond, o.enqueued_at, @now) / 1e6, 0),
                        300, 3600,
                        concat(
                            N'seconds that the oldest ready message has waited',
                            iif(q.paused_at is null, N'', N'; the queue is paused')
                        )
                    ),
                    (
                        N'dead_messages', b.messages, 1, 1000,
                        N'dead messages, counted up to 1000; see list_dead and reset'
                    ),
                    (
                        N'overdue_delayed',
                        coalesce(datediff_big(microsecond, d.due_at, @now) / 1e6, 0), 30, 300,
                        N'seconds that the oldest due message has not been promoted;'
                            + N' call maintain every second'
                    ),
                    (
                        N'expired_leases',
                        coalesce(datediff_big(microsecond, e.lease_until, @now) / 1e6, 0), 30, 300,
                        N'seconds that the oldest expired lease has not been reaped;'
                            + N' call maintain every second'
                    ),
                    (
                        N'overdue_groups',
                        coalesce(datediff_big(microsecond, g.due_at, @now) / 1e6, 0), 30, 300,
                        N'seconds that a group, or what waits for others, has waited for a'
                            + N' transaction to end, or for maintain'
                    ),
                    (
                        N'waits_for_dead', w.messages, 1, 1000,
                        N'messages that wait for the newest 10000 dead ones, counted up to 1000;'
                            + N' reset or cancel these'
                    ),
                    (
                        N'overdue_schedules',
                        coalesce(datediff_big(microsecond, s.next_run_at, @now) / 1e6, 0), 30, 300,
                        N'seconds that a tick of a schedule has not been run;'
                            + N' call maintain every second'
                    ),
                    (
                        N'failed_schedules', f.schedules, 1, 1000,
                        N'schedules whose last tick made no message; list_schedules says why'
                    ),
                    (
                        N'overdue_expiries',
                        coalesce(datediff_big(microsecond, y.expires_at, @now) / 1e6, 0), 30, 300,
                        N'seconds that a message whose time has come has waited for maintain, or'
                            + N' for who holds it'
                    ),
                    (
                        N'overdue_results',
                        iif(
                            datediff_big(microsecond, k.finished_at, @now) / 1e6 > q.result_seconds,
                            datediff_big(microsecond, k.finished_at, @now) / 1e6 - q.result_seconds,
                            0
                        ),
                        300, 3600,
                        N'seconds that the oldest result has been kept beyond result_seconds;'
                            + N' call maintain every second'
                    ),
                    (
                        N'overdue_history',
                        iif(
                            datediff_big(second, i.ended_at, @now) > q.history_days * 86400e0,
                            datediff_big(microsecond, i.ended_at, @now) / 1e6
                            - q.history_days * 86400e0,
                            0
                        ),
                        3600, 86400,
                        N'seconds that the oldest attempt has been kept beyond history_days;'
                            + N' call maintain every second'
                    )
            ) v (check_name, value, warning, critical, detail)
        ) c
        order by c.check_name, c.queue_name
        option (loop join, maxdop 1, recompile);
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go

-- [file routines/version.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Version
as
begin
-- routine   Version
-- version   1
-- purpose   What is installed.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    set nocount on;
    set rowcount 0;
    select
        (select m.value from rowq.meta m where m.name = N'rowq_version') as rowq_version,
        (select cast(m.value as int) from rowq.meta m where m.name = N'schema_version')
            as schema_version,
        -- The first line of @@version has product, version and build.
        rtrim(left(@@version, charindex(nchar(10), @@version + nchar(10)) - 1)) as engine;
end
go

-- [file routines/care_for_indexes.sql]
set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.CareForIndexes
    @min_pages int = 1000,
    @max_seconds int = 300
with execute as owner
as
begin
-- routine   CareForIndexes
-- version   1
-- purpose   Rebuild or reorganize the indexes that traffic has worn out, as gently as the edition allows.
-- promise   P17
-- locks     online, the table for a moment at the end; offline, the table while it is rebuilt
-- commits   each index by itself; refuses to work inside a transaction
-- errors    RQ711 RQ713
-- differs   this engine's own: the others give back space by themselves
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    set lock_timeout 1000;
    set transaction isolation level read committed;
    -- A table is not available while its index is rebuilt offline. 12800 pages are 100 MB and take
    -- about a second.
    declare @most_offline bigint = 12800;
    declare @edition int = cast(serverproperty('EngineEdition') as int);
    declare @is_online bit = iif(@edition in (3, 5, 8, 12), 1, 0);
    declare @until datetime2(6) = dateadd(second, @max_seconds, sysutcdatetime());
    declare @place int = 0;
    declare @last int;
    declare @how nvarchar(20);
    declare @statement nvarchar(2000);
    declare @worn table (
        place            int not null identity primary key,
        table_name       nvarchar(128) not null,
        index_name       nvarchar(128) not null,
        partition_number int not null,
        is_partitioned   bit not null,
        is_movable       bit not null,
        is_frozen        bit not null,
        is_thin          bit not null,
        pages            bigint not null,
        density          float not null,
        fragmentation    float not null,
        outcome          nvarchar(20) not null default N'left',
        detail           nvarchar(2000) null default N'the time was up'
    );

    exec rowq.InternalCheckRange N'min_pages', @min_pages, 1, 1000000000, @is_required = 1;
    exec rowq.InternalCheckRange N'max_seconds', @max_seconds, 1, 86400, @is_required = 1;
    if @@trancount > 0 or @@options & 2 = 2
        throw 52713, N'RQ713 wrong_transaction_state: care_for_indexes commits as it works', 1;

    insert into @worn (
        table_name, index_name, partition_number, is_partitioned, is_movable, is_frozen, is_thin,
        pages, density, fragmentation
    )
    select o.name, i.name, p.partition_number,
           iif(d.data_space_id is null, 0, 1), i.allow_page_locks, s.no_recompute, t.is_thin,
           p.page_count, p.avg_page_space_used_in_percent, p.avg_fragmentation_in_percent
    from sys.objects o
    inner join sys.indexes i on i.object_id = o.object_id
    inner join sys.stats s on s.object_id = i.object_id and s.stats_id = i.index_id
    left join sys.partition_schemes d on d.data_space_id = i.data_space_id
    cross apply sys.dm_db_index_physical_stats(
        db_id(), i.object_id, i.index_id, null, N'SAMPLED'
    ) p
    cross apply (
        -- A page that holds fewer than four rows is never full, so it does not count as thin.
        values (
            iif(p.avg_page_space_used_in_percent < 60 and p.avg_record_size_in_bytes < 2000, 1, 0)
        )
    ) t (is_thin)
    where o.schema_id = schema_id(N'rowq')
      and o.type = 'U'
      and p.alloc_unit_type_desc = N'IN_ROW_DATA'
      and p.index_level = 0
      and p.page_count >= @min_pages
      and (p.avg_fragmentation_in_percent >= 10 or t.is_thin = 1)
    order by p.page_count * (100 - p.avg_page_space_used_in_percent) desc;
    set @last = @@rowcount;

    while @place < @last and sysutcdatetime() < @until
    begin
        set @place += 1;
        -- Reorganizing needs page locks, which are off for the hot tables (is_movable is 0).
        select @how = case
                   when w.fragmentation < 30 and w.is_thin = 0
                       then iif(w.is_movable = 1, N'reorganized', N'left')
                   when @is_online = 1 then N'rebuilt_online'
                   when w.pages <= @most_offline then N'rebuilt'
                   else iif(w.is_movable = 1, N'reorganized', N'left')
               end
        from @worn w
        where w.place = @place;
        if @how = N'left'
        begin
            update w
            set w.detail = iif(
                    w.fragmentation < 30 and w.is_thin = 0, N'not worn enough to be rebuilt',
                    N'too large to be rebuilt offline, as this edition does'
                )
            from @worn w
            where w.place = @place;
            continue;
        end;

        -- The rebuild is not resumable: while it was paused, every write would have to keep a
        -- second copy. statistics_norecompute is said again, because sys.indexes does not store it
        -- and a rebuild would turn it off.
        select @statement = concat(
                   N'alter index ', quotename(w.index_name), N' on rowq.', quotename(w.table_name),
                   iif(@how = N'reorganized', N' reorganize', N' rebuild'),
                   iif(w.is_partitioned = 1, concat(N' partition = ', w.partition_number), N''),
                   case
                       when @how = N'reorganized' then N''
                       else concat(
                           N' with (maxdop = 1',
                           iif(
                               w.is_frozen = 1 and w.is_partitioned = 0,
                               N', statistics_norecompute = on', N''
                           ),
                           iif(
                               @how = N'rebuilt_online',
                               N', online = on (wait_at_low_priority ('
                                   + N'max_duration = 1 minutes, abort_after_wait = self))',
                               N''
                           ),
                           N')'
                       )
                   end
               )
        from @worn w
        where w.place = @place;
        begin try
            exec sys.sp_executesql @statement;
            update w set w.outcome = @how, w.detail = null from @worn w where w.place = @place;
        end try
        begin catch
            -- An error, such as a table that somebody holds, is reported in the row, and the index
            -- is left for another day.
            update w
            set w.detail = left(error_message(), 2000)
            from @worn w
            where w.place = @place;
        end catch;
    end;

    select w.table_name, w.index_name, w.partition_number, w.pages, w.density, w.fragmentation,
           w.outcome, w.detail
    from @worn w
    order by w.place;
end
go

-- [file comments.sql]
-- This script lets SSMS and other tools show what each procedure, table and column is, as the
-- property MS_Description. It may run any number of times, and changes only a description that is
-- not right yet, because a change waits for whoever uses the object. It leaves alone what is not
-- there.
set quoted_identifier on;
set ansi_nulls on;
go
declare @kind varchar(9), @name sysname, @part varchar(6), @column sysname;
declare @description nvarchar(3000), @is_new bit;
declare described cursor local static read_only forward_only for
select
    w.kind, o.name, iif(c.name is null, null, 'column'), c.name,
    w.description, iif(p.value is null, 1, 0)
from (
    values
        -- comments: generated from contract.toml by make generate
        (N'procedure', N'CreateQueue', N'', N'Create a queue; an existing queue of that name is left as it is.'),
        (N'procedure', N'AlterQueue', N'', N'Change settings of a queue; null leaves a setting as it is.'),
        (N'procedure', N'DropQueue', N'', N'Remove an empty queue, or with force a queue and everything in it, archive included.'),
        (N'procedure', N'PauseQueue', N'', N'Stop delivery; enqueue and the finishing routines go on.'),
        (N'procedure', N'ResumeQueue', N'', N'Start delivery again.'),
        (N'procedure', N'BindTopic', N'', N'Let a queue get what is published under the topics that a pattern matches.'),
        (N'procedure', N'UnbindTopic', N'', N'Take a queue''s pattern away; what it has got stays.'),
        (N'procedure', N'PurgeQueue', N'', N'Delete waiting messages: ready, delayed, blocked; leased ones stay with their workers.'),
        (N'procedure', N'Enqueue', N'', N'Hand over one message.'),
        (N'procedure', N'EnqueueBatch', N'', N'Hand over many messages in one call: all of them or, on an error, none.'),
        (N'procedure', N'Publish', N'', N'Hand over one message to each queue that is bound to a topic, in the order of their names; to none where none is. Without a message_type it is the topic.'),
        (N'procedure', N'PublishBatch', N'', N'Do what publish does with many messages in one call, queue by queue: all of them or, on an error, none.'),
        (N'procedure', N'DequeueFast', N'', N'Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.'),
        (N'procedure', N'DequeueWait', N'', N'Do what dequeue_fast does, but wait until something is ready or the time is up; return fewer messages where they are long.'),
        (N'procedure', N'Peek', N'', N'Show the next ready messages without leasing them.'),
        (N'procedure', N'Complete', N'', N'Finish messages: they are gone, or in the archive, and never delivered again.'),
        (N'procedure', N'RetryLater', N'', N'Give messages back for another attempt after a delay, the queue''s backoff unless delay_seconds is given; without an attempt left they are dead.'),
        (N'procedure', N'FailNow', N'', N'Declare messages dead without another attempt.'),
        (N'procedure', N'Release', N'', N'Give messages back to the front of their priority without spending the attempt.'),
        (N'procedure', N'ExtendLease', N'', N'Heartbeat: hold all messages of a claim for lease_seconds from now; a lease is never shortened.'),
        (N'procedure', N'Cancel', N'', N'Withdraw messages that no worker holds, dead ones too.'),
        (N'procedure', N'CancelMany', N'', N'Look at up to max_messages messages, in the order of their ids, and withdraw those that match every filter given and that no worker holds, dead ones too. At least one filter is required.'),
        (N'procedure', N'Reset', N'', N'Make dead messages ready again, at the tail of their priority, with fresh attempts; null takes the oldest max_messages.'),
        (N'procedure', N'DiscardDead', N'', N'Delete dead messages for good, the archive keeps none of them; null takes the oldest max_messages.'),
        (N'procedure', N'CreateSchedule', N'', N'Let maintain enqueue a message at the times of a cron expression, or every so many seconds; an existing schedule of that name is left as it is.'),
        (N'procedure', N'AlterSchedule', N'', N'Change a schedule, pause it or let it go on; null leaves a setting as it is. It counts anew from now: what it has missed is not made up for.'),
        (N'procedure', N'DropSchedule', N'', N'Remove a schedule; the messages that it made stay.'),
        (N'procedure', N'RunSchedule', N'', N'Enqueue the message of a schedule now, paused or not; its next tick stays as it is.'),
        (N'procedure', N'ListSchedules', N'', N'The schedules of one queue, or of all, without their bodies and headers.'),
        (N'procedure', N'NextTicks', N'', N'When a schedule with these times would run: a look before it is created. An interval counts from after.'),
        (N'procedure', N'Maintain', N'', N'All housekeeping of one queue, or of every queue: schedules, promote, reap, expiry, floors, archive, results, history. Call it about once a second.'),
        (N'procedure', N'Reap', N'', N'Take unfinished messages back from claims whose lease ran out.'),
        (N'procedure', N'Promote', N'', N'Make delayed messages ready whose time has come.'),
        (N'procedure', N'Archive', N'', N'Move finished messages of a queue with archive_days above 0 to the archive.'),
        (N'procedure', N'PurgeArchive', N'', N'Delete archived messages older than the queue''s archive_days and attempts older than its history_days, and drop partitions that no queue needs.'),
        (N'procedure', N'QueueStats', N'', N'Counts, age and settings of one queue or all.'),
        (N'procedure', N'GetMessage', N'', N'Where a message is and everything about it; no row when rowq does not know it.'),
        (N'procedure', N'FindMessage', N'', N'Find the unfinished message that has a dedup key, and return what get_message does.'),
        (N'procedure', N'GetResult', N'', N'How a message has ended, and its result; of one that has not ended its state; no row when rowq does not know it.'),
        (N'procedure', N'WaitForResult', N'', N'Do what get_result does, but wait until the message has ended or the time is up; the queue must keep results.'),
        (N'procedure', N'GetHistory', N'', N'The attempts of a message: those that have ended within the queue''s history_days, oldest first, then the present lease. A lease that ran out is lease_expired, also where no attempt was left; no row when rowq knows of none.'),
        (N'procedure', N'ListDead', N'', N'Dead messages, without their bodies, in the order of their ids, or backwards before one; of one type only, if given.'),
        (N'procedure', N'ListClaims', N'', N'Who is at work on what: the claims of one queue or all, in the order of their ids.'),
        (N'procedure', N'ListDelayed', N'', N'Messages that wait for their time, without their bodies, in the order in which they become due.'),
        (N'procedure', N'ListTopics', N'', N'The patterns of one queue or all, in the order of the queues'' names.'),
        (N'procedure', N'Health', N'', N'Report what needs attention: who holds back clean-up, overdue messages, expired leases, dead messages, a sequence behind its data.'),
        (N'procedure', N'Version', N'', N'What is installed.'),
        (N'procedure', N'CareForIndexes', N'', N'Rebuild or reorganize the indexes that traffic has worn out, as gently as the edition allows.'),
        (N'table', N'archived', N'', N'Finished messages, kept for the queue''s archive_days.'),
        (N'table', N'blocked', N'', N'Messages that wait for others to end.'),
        (N'table', N'claim', N'', N'One successful dequeue each: the lease of a batch.'),
        (N'table', N'dead', N'', N'Messages that failed for good, until they are reset, cancelled or purged.'),
        (N'table', N'dedup', N'', N'Dedup keys of unfinished messages.'),
        (N'table', N'delayed', N'', N'Messages that wait for their time.'),
        (N'table', N'expiry', N'', N'When messages expire: what is due is withdrawn by maintain, or has ended before.'),
        (N'table', N'finished', N'', N'Finished messages of queues that keep an archive, until archive moves them there.'),
        (N'table', N'gate', N'', N'One row a queue, which a dequeue of a limited queue locks while it counts and takes.'),
        (N'table', N'grouped', N'', N'Messages that wait behind others of their groups.'),
        (N'table', N'history', N'', N'Attempts that have ended, kept for the queue''s history_days.'),
        (N'table', N'lane', N'', N'Lanes of each queue, and where their live rows begin, so that no reader walks the dead rows before them.'),
        (N'table', N'leased', N'', N'Messages of the claims, in the order of their delivery.'),
        (N'table', N'message', N'', N'What the producers handed over: written once, deleted once.'),
        (N'table', N'message_group', N'', N'Tokens: each is the right of one message of a group to be ready, leased or waiting for a retry.'),
        (N'table', N'meta', N'', N'What is installed: schema_version and rowq_version.'),
        (N'table', N'part', N'', N'One row a queue, which is locked while messages are added or moved, and never changes.'),
        (N'table', N'queue', N'', N'Queues and their settings.'),
        (N'table', N'ready', N'', N'Messages that wait for a worker; the primary key is the order of delivery.'),
        (N'table', N'recheck', N'', N'What could not be passed on at once, because others were at work on it: tokens of groups, messages that waited for others; maintain looks at it again.'),
        (N'table', N'result', N'', N'How messages have ended, with their results, kept for the queue''s result_seconds.'),
        (N'table', N'schedule', N'', N'Schedules, whose messages maintain adds to their queues when they are due.'),
        (N'table', N'started', N'', N'The deliveries of queues with a rate_limit that began within their rate_seconds: a row each dequeue.'),
        (N'table', N'successor', N'', N'Which message waits for which other one.'),
        (N'table', N'time_zone', N'', N'Which time zone of Windows, as SQL Server knows it, an IANA name stands for; the source is windowsZones in the Unicode CLDR.'),
        (N'table', N'topic_binding', N'', N'Which queue gets what is published under which topics.'),
        (N'table', N'archived', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'archived', N'finished_at', N'When it was completed, cancelled, expired or declared dead.'),
        (N'table', N'archived', N'message_id', N'The message.'),
        (N'table', N'archived', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'archived', N'attempt', N'How many times the message has been leased.'),
        (N'table', N'archived', N'enqueued_at', N'When the producer handed it over.'),
        (N'table', N'archived', N'state', N'completed, cancelled or expired.'),
        (N'table', N'archived', N'message_type', N'The producer''s label.'),
        (N'table', N'archived', N'dedup_key', N'The producer''s dedup key.'),
        (N'table', N'archived', N'headers', N'The producer''s headers.'),
        (N'table', N'archived', N'body', N'Text body, or null.'),
        (N'table', N'archived', N'body_binary', N'Binary body, or null.'),
        (N'table', N'archived', N'group_key', N'The producer''s group key.'),
        (N'table', N'blocked', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'blocked', N'message_id', N'The message.'),
        (N'table', N'blocked', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'blocked', N'predecessor_id', N'The message that it waits for now; null where that is to be found out.'),
        (N'table', N'blocked', N'due_at', N'When the message may be delivered, if it has a time of its own.'),
        (N'table', N'blocked', N'on_dead', N'What a dead predecessor does to the message: hold, continue or fail; null is hold.'),
        (N'table', N'blocked', N'group_key', N'The group that it joins when it waits for nothing any more.'),
        (N'table', N'blocked', N'rest_ids', N'The other messages that it may have to wait for, in order.'),
        (N'table', N'claim', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'claim', N'claim_id', N'The claim that holds the lease; pass it to the finishing routines.'),
        (N'table', N'claim', N'leased_at', N'When the dequeue leased the message.'),
        (N'table', N'claim', N'lease_until', N'When the lease runs out.'),
        (N'table', N'claim', N'worker_name', N'Who holds the lease.'),
        (N'table', N'claim', N'has_cancels', N'Whether messages of the batch were cancelled while the worker had them; null or 0 for no.'),
        (N'table', N'claim', N'progress', N'How far the work is, as the worker said last.'),
        (N'table', N'dead', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'dead', N'message_id', N'The message.'),
        (N'table', N'dead', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'dead', N'attempt', N'How many times the message has been leased.'),
        (N'table', N'dead', N'died_at', N'When it failed for good.'),
        (N'table', N'dead', N'holds_group', N'Whether the dead message has kept its token, so that its group waits; else null.'),
        (N'table', N'dedup', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'dedup', N'dedup_key', N'The producer''s dedup key.'),
        (N'table', N'dedup', N'message_id', N'The message.'),
        (N'table', N'delayed', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'delayed', N'due_at', N'When a delayed message becomes ready.'),
        (N'table', N'delayed', N'message_id', N'The message.'),
        (N'table', N'delayed', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'delayed', N'attempt', N'How many times the message has been leased.'),
        (N'table', N'delayed', N'group_key', N'Group that the message joins when it is due; null for one that has its token.'),
        (N'table', N'expiry', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'expiry', N'expires_at', N'Maintain looks for the message from this moment on.'),
        (N'table', N'expiry', N'expiry_id', N'Makes the key unique.'),
        (N'table', N'expiry', N'message_id', N'The message.'),
        (N'table', N'expiry', N'lane', N'Lane in which the message is if it is ready.'),
        (N'table', N'expiry', N'seq', N'Its place there; null where the row was written for another place.'),
        (N'table', N'finished', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'finished', N'finished_at', N'When it was completed, cancelled, expired or declared dead.'),
        (N'table', N'finished', N'message_id', N'The message.'),
        (N'table', N'finished', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'finished', N'attempt', N'How many times the message has been leased.'),
        (N'table', N'finished', N'state', N'completed, cancelled or expired.'),
        (N'table', N'gate', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'grouped', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'grouped', N'group_key', N'The producer''s group key.'),
        (N'table', N'grouped', N'message_id', N'The message.'),
        (N'table', N'grouped', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'history', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'history', N'ended_at', N'When the attempt ended.'),
        (N'table', N'history', N'message_id', N'The message.'),
        (N'table', N'history', N'claim_id', N'The claim that held the message.'),
        (N'table', N'history', N'attempt', N'How many times the message has been leased.'),
        (N'table', N'history', N'leased_at', N'When the dequeue leased the message.'),
        (N'table', N'history', N'outcome', N'completed, retrying, dead, released, lease_expired or cancelled.'),
        (N'table', N'history', N'worker_name', N'Who held the lease.'),
        (N'table', N'history', N'error', N'What the worker said went wrong, or that the lease expired; else null.'),
        (N'table', N'lane', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'lane', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'lane', N'is_open', N'Whether dequeue looks into the lane; a mark of its own where the lane is below 0.'),
        (N'table', N'lane', N'floor', N'Where the live rows of the lane begin: a hint.'),
        (N'table', N'lane', N'check_after', N'No rescan looks at the lane before this moment.'),
        (N'table', N'leased', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'leased', N'claim_id', N'The claim that holds the lease; pass it to the finishing routines.'),
        (N'table', N'leased', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'leased', N'seq', N'Place in the lane; it only grows.'),
        (N'table', N'leased', N'message_id', N'The message.'),
        (N'table', N'leased', N'attempt', N'How many times the message has been leased.'),
        (N'table', N'leased', N'is_cancelled', N'Whether the message was cancelled while its worker had it; null or 0 for no.'),
        (N'table', N'message', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'message', N'message_id', N'The message.'),
        (N'table', N'message', N'max_attempts', N'Leases before a message is dead; of a message: null for the queue''s setting.'),
        (N'table', N'message', N'enqueued_at', N'When the producer handed it over.'),
        (N'table', N'message', N'due_at', N'When a delayed message becomes ready.'),
        (N'table', N'message', N'expires_at', N'When maintain withdraws the message unless it has ended, or null.'),
        (N'table', N'message', N'message_type', N'The producer''s label.'),
        (N'table', N'message', N'dedup_key', N'The producer''s dedup key.'),
        (N'table', N'message', N'headers', N'The producer''s headers.'),
        (N'table', N'message', N'body', N'Text body, or null.'),
        (N'table', N'message', N'body_binary', N'Binary body, or null.'),
        (N'table', N'message', N'last_error', N'What went wrong last, or null.'),
        (N'table', N'message', N'group_key', N'The producer''s group key.'),
        (N'table', N'message_group', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'message_group', N'group_key', N'The producer''s group key.'),
        (N'table', N'message_group', N'token_no', N'Number of the token in its group, from 1.'),
        (N'table', N'meta', N'name', N'What the value is of.'),
        (N'table', N'meta', N'value', N'The value.'),
        (N'table', N'meta', N'changed_at', N'When the value was set.'),
        (N'table', N'part', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'queue', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'queue', N'queue_key', N'Bytes of the name, which are what is compared.'),
        (N'table', N'queue', N'queue_name', N'Name of the queue.'),
        (N'table', N'queue', N'lease_seconds', N'Setting: default lease.'),
        (N'table', N'queue', N'max_attempts', N'Leases before a message is dead; of a message: null for the queue''s setting.'),
        (N'table', N'queue', N'backoff_base_seconds', N'Setting: delay before the second attempt.'),
        (N'table', N'queue', N'backoff_factor', N'Setting: growth of the delay.'),
        (N'table', N'queue', N'backoff_cap_seconds', N'Setting: longest delay.'),
        (N'table', N'queue', N'backoff_jitter', N'Setting: random share taken off a delay.'),
        (N'table', N'queue', N'archive_days', N'Setting: days in the archive.'),
        (N'table', N'queue', N'max_body_length', N'Setting: longest body.'),
        (N'table', N'queue', N'group_limit', N'Setting: messages of one group in work at once.'),
        (N'table', N'queue', N'group_after_dead', N'Setting: continue or hold.'),
        (N'table', N'queue', N'group_pause_seconds', N'Setting: rest of a group between two messages.'),
        (N'table', N'queue', N'has_recheck', N'Whether a dequeue that finds nothing looks into recheck, too: maintain sets it once a token was left there.'),
        (N'table', N'queue', N'max_leased', N'Setting: most messages leased at a time; 0 is no limit.'),
        (N'table', N'queue', N'rate_limit', N'Setting: most deliveries begun within rate_seconds; 0 is no limit.'),
        (N'table', N'queue', N'rate_seconds', N'Setting: the time that rate_limit is about.'),
        (N'table', N'queue', N'result_seconds', N'Setting: how long results are kept; 0 is not at all.'),
        (N'table', N'queue', N'history_days', N'Setting: days that ended attempts are kept; 0 is not at all.'),
        (N'table', N'queue', N'paused_at', N'Since when dequeue is stopped; null while it is not.'),
        (N'table', N'queue', N'created_at', N'When the queue was created.'),
        (N'table', N'ready', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'ready', N'lane', N'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.'),
        (N'table', N'ready', N'seq', N'Place in the lane; it only grows.'),
        (N'table', N'ready', N'message_id', N'The message.'),
        (N'table', N'ready', N'attempt', N'How many times the message has been leased.'),
        (N'table', N'recheck', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'recheck', N'due_at', N'Maintain looks at it from this moment on.'),
        (N'table', N'recheck', N'recheck_id', N'Makes the key unique.'),
        (N'table', N'recheck', N'message_id', N'A blocked message that may wait for nothing any more.'),
        (N'table', N'recheck', N'predecessor_id', N'A message that has ended, of which not all successors were freed.'),
        (N'table', N'recheck', N'group_key', N'The group that the token is of; null where it is no token.'),
        (N'table', N'recheck', N'is_hint', N'Whether there is no token yet, but may be one to take; of a predecessor: whether it is dead.'),
        (N'table', N'result', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'result', N'message_id', N'The message.'),
        (N'table', N'result', N'finished_at', N'When it was completed, cancelled, expired or declared dead.'),
        (N'table', N'result', N'state', N'completed, cancelled, expired or dead.'),
        (N'table', N'result', N'result', N'What complete was given for the message, or null.'),
        (N'table', N'result', N'last_error', N'What went wrong last, or null.'),
        (N'table', N'schedule', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'schedule', N'schedule_key', N'Bytes of the name, which are what is compared.'),
        (N'table', N'schedule', N'schedule_name', N'Name of the schedule.'),
        (N'table', N'schedule', N'cron', N'Its times as in a crontab, or null.'),
        (N'table', N'schedule', N'interval_seconds', N'Seconds between its ticks, or null.'),
        (N'table', N'schedule', N'time_zone', N'Whose clocks cron means.'),
        (N'table', N'schedule', N'missed', N'What becomes of late ticks: skip, once or all.'),
        (N'table', N'schedule', N'overlap', N'Whether a tick makes a message while that of an earlier one has not ended.'),
        (N'table', N'schedule', N'starts_at', N'No tick comes before this moment; intervals are counted from it.'),
        (N'table', N'schedule', N'ends_at', N'No tick comes after this moment, or null.'),
        (N'table', N'schedule', N'message_type', N'The producer''s label.'),
        (N'table', N'schedule', N'headers', N'The producer''s headers.'),
        (N'table', N'schedule', N'priority', N'0 to 9; 0 is delivered first.'),
        (N'table', N'schedule', N'group_key', N'The producer''s group key.'),
        (N'table', N'schedule', N'max_attempts', N'Leases before a message is dead; of a message: null for the queue''s setting.'),
        (N'table', N'schedule', N'body', N'Text body, or null.'),
        (N'table', N'schedule', N'body_binary', N'Binary body, or null.'),
        (N'table', N'schedule', N'is_paused', N'It is stopped: a queue delivers nothing, a schedule makes no message.'),
        (N'table', N'schedule', N'next_run_at', N'The next tick; null while the schedule is paused, and after its last one.'),
        (N'table', N'schedule', N'last_run_at', N'When it last made a message, or null.'),
        (N'table', N'schedule', N'last_message_id', N'The message that it made then, or null.'),
        (N'table', N'schedule', N'last_error', N'What went wrong last, or null.'),
        (N'table', N'started', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'started', N'started_at', N'When the dequeue leased them.'),
        (N'table', N'started', N'claim_id', N'The claim that holds the lease; pass it to the finishing routines.'),
        (N'table', N'started', N'messages', N'How many messages the dequeue leased.'),
        (N'table', N'successor', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'successor', N'predecessor_id', N'The message that it waits for now; null where that is to be found out.'),
        (N'table', N'successor', N'message_id', N'The message.'),
        (N'table', N'successor', N'on_dead', N'What a dead predecessor does to the message: hold, continue or fail; null is hold.'),
        (N'table', N'time_zone', N'iana_name', N'A name such as Europe/Berlin.'),
        (N'table', N'time_zone', N'windows_name', N'The name that Windows and SQL Server have for it.'),
        (N'table', N'topic_binding', N'part_id', N'The queue; never used again for another one.'),
        (N'table', N'topic_binding', N'topic_pattern', N'What of the topics the queue gets.'),
        (N'table', N'topic_binding', N'word_count', N'How many words the pattern has, without #.'),
        (N'table', N'topic_binding', N'has_rest', N'Whether any words may follow, or none: the pattern ends with #.'),
        (N'table', N'topic_binding', N'literal_head', N'The words before the first * or #, which the topic has to begin with.'),
        (N'table', N'topic_binding', N'like_pattern', N'What the topic''s first word_count words are compared with, ! before what is no wildcard; null where literal_head has said it.')
        -- end of comments
) w (kind, name, column_name, description)
inner join sys.objects o
    on o.schema_id = schema_id(N'rowq')
    and o.name = w.name
    and o.type = iif(w.kind = N'table', 'U', 'P')
left join sys.columns c
    on c.object_id = o.object_id
    and c.name = w.column_name
left join sys.extended_properties p
    on p.class = 1
    and p.major_id = o.object_id
    and p.minor_id = coalesce(c.column_id, 0)
    and p.name = N'MS_Description'
where (w.column_name = N'' or c.column_id is not null)
  and (p.value is null or cast(p.value as nvarchar(3000)) <> w.description);
open described;
fetch next from described into @kind, @name, @part, @column, @description, @is_new;
while @@fetch_status = 0
begin
    if @is_new = 1
        exec sys.sp_addextendedproperty
            @name = N'MS_Description', @value = @description,
            @level0type = 'schema', @level0name = N'rowq', @level1type = @kind, @level1name = @name,
            @level2type = @part, @level2name = @column;
    else
        exec sys.sp_updateextendedproperty
            @name = N'MS_Description', @value = @description,
            @level0type = 'schema', @level0name = N'rowq', @level1type = @kind, @level1name = @name,
            @level2type = @part, @level2name = @column;
    fetch next from described into @kind, @name, @part, @column, @description, @is_new;
end;
close described;
deallocate described;
go

-- [after noted]
if not exists (
    select 1
    from rowq.migration m
    where m.migration_hash = N'e22a7daafffc6637612bf3ee6dc3531296b02340aac43b287a58577a4ebb0a67'
)
begin
    insert into rowq.migration (migration_hash, migration_id, applied_at_utc)
    values (
        N'e22a7daafffc6637612bf3ee6dc3531296b02340aac43b287a58577a4ebb0a67',
        N'ms-0001-first-release', sysutcdatetime()
    );

    insert into rowq.migration_log
        (id, migration_hash, migration_id, operation, username, hostname, created_at_utc)
    values (
        lower(convert(nvarchar(36), newid())),
        N'e22a7daafffc6637612bf3ee6dc3531296b02340aac43b287a58577a4ebb0a67',
        N'ms-0001-first-release', N'apply', original_login(), N'script', sysutcdatetime()
    );
end;

update m
set value = v.value,
    changed_at = sysutcdatetime()
from rowq.meta m
join (
    values (N'schema_version', N'1'), (N'rowq_version', N'0.1.0')
) v (name, value) on v.name = m.name
where m.value <> v.value;

insert into rowq.meta (name, value, changed_at)
select v.name, v.value, sysutcdatetime()
from (
    values (N'schema_version', N'1'), (N'rowq_version', N'0.1.0')
) v (name, value)
where not exists (select 1 from rowq.meta m where m.name = v.name);
go

-- [file grants.sql]
-- Four database roles may call routines, and public has no right. The roles have rights on routines
-- only, and these reach the tables, because all of rowq has one owner. A procedure that declares a
-- variable of a table type asks its caller for a right on the type, which opens nothing else. Give
-- a role to a user with: alter role rowq_consumer add member shop_worker. Run this again after
-- every upgrade.
set quoted_identifier on;
set ansi_nulls on;
go
-- The owner needs this right for partitions, the days of the archive, which are in no schema.
grant alter any dataspace to rowq_owner;
go
if database_principal_id(N'rowq_producer') is null
    create role rowq_producer authorization dbo;
go
if database_principal_id(N'rowq_consumer') is null
    create role rowq_consumer authorization dbo;
go
if database_principal_id(N'rowq_admin') is null
    create role rowq_admin authorization dbo;
go
if database_principal_id(N'rowq_monitor') is null
    create role rowq_monitor authorization dbo;
go
-- This revokes all that the roles have on rowq or are denied; what they should have is granted
-- below. Give further rights to other roles.
declare @statement nvarchar(max);
select @statement = string_agg(
    cast(concat(
        N'revoke ', p.permission_name collate database_default, N' on ',
        case p.class
            when 1 then concat(
                N'object::rowq.', quotename(o.name),
                iif(p.minor_id = 0, N'', concat(N' (', quotename(c.name), N')'))
            )
            when 3 then N'schema::rowq'
            else concat(N'type::rowq.', quotename(t.name))
        end,
        N' from ', u.name, N' cascade;'
    ) as nvarchar(max)),
    N' '
)
from sys.database_permissions p
inner join sys.database_principals u on u.principal_id = p.grantee_principal_id
left join sys.objects o on p.class = 1 and o.object_id = p.major_id
left join sys.columns c on p.class = 1 and c.object_id = p.major_id and c.column_id = p.minor_id
left join sys.types t on p.class = 6 and t.user_type_id = p.major_id
where u.name in (N'rowq_producer', N'rowq_consumer', N'rowq_admin', N'rowq_monitor')
  and (
      o.schema_id = schema_id(N'rowq')
      or p.class = 3 and p.major_id = schema_id(N'rowq')
      or t.schema_id = schema_id(N'rowq')
  );
if @statement is not null
    exec sys.sp_executesql @statement;
go
-- rights: generated from contract.toml by make generate
grant execute on rowq.CreateQueue to rowq_admin;
grant execute on rowq.AlterQueue to rowq_admin;
grant execute on rowq.DropQueue to rowq_admin;
grant execute on rowq.PauseQueue to rowq_admin;
grant execute on rowq.ResumeQueue to rowq_admin;
grant execute on rowq.BindTopic to rowq_admin;
grant execute on rowq.UnbindTopic to rowq_admin;
grant execute on rowq.PurgeQueue to rowq_admin;
grant execute on rowq.Enqueue to rowq_admin;
grant execute on rowq.EnqueueBatch to rowq_admin;
grant execute on rowq.Publish to rowq_admin;
grant execute on rowq.PublishBatch to rowq_admin;
grant execute on rowq.DequeueFast to rowq_admin;
grant execute on rowq.DequeueWait to rowq_admin;
grant execute on rowq.Peek to rowq_admin;
grant execute on rowq.Complete to rowq_admin;
grant execute on rowq.RetryLater to rowq_admin;
grant execute on rowq.FailNow to rowq_admin;
grant execute on rowq.Release to rowq_admin;
grant execute on rowq.ExtendLease to rowq_admin;
grant execute on rowq.Cancel to rowq_admin;
grant execute on rowq.CancelMany to rowq_admin;
grant execute on rowq.Reset to rowq_admin;
grant execute on rowq.DiscardDead to rowq_admin;
grant execute on rowq.CreateSchedule to rowq_admin;
grant execute on rowq.AlterSchedule to rowq_admin;
grant execute on rowq.DropSchedule to rowq_admin;
grant execute on rowq.RunSchedule to rowq_admin;
grant execute on rowq.ListSchedules to rowq_admin;
grant execute on rowq.NextTicks to rowq_admin;
grant execute on rowq.Maintain to rowq_admin;
grant execute on rowq.Reap to rowq_admin;
grant execute on rowq.Promote to rowq_admin;
grant execute on rowq.Archive to rowq_admin;
grant execute on rowq.PurgeArchive to rowq_admin;
grant execute on rowq.QueueStats to rowq_admin;
grant execute on rowq.GetMessage to rowq_admin;
grant execute on rowq.FindMessage to rowq_admin;
grant execute on rowq.GetResult to rowq_admin;
grant execute on rowq.WaitForResult to rowq_admin;
grant execute on rowq.GetHistory to rowq_admin;
grant execute on rowq.ListDead to rowq_admin;
grant execute on rowq.ListClaims to rowq_admin;
grant execute on rowq.ListDelayed to rowq_admin;
grant execute on rowq.ListTopics to rowq_admin;
grant execute on rowq.Health to rowq_admin;
grant execute on rowq.Version to rowq_admin;
grant execute on rowq.CareForIndexes to rowq_admin;
grant execute on type::rowq.message_list to rowq_admin;
grant execute on type::rowq.tie_list to rowq_admin;
grant execute on type::rowq.new_list to rowq_admin;
grant execute on type::rowq.given_list to rowq_admin;
grant execute on type::rowq.parsed_list to rowq_admin;
go
grant execute on rowq.Enqueue to rowq_producer;
grant execute on rowq.EnqueueBatch to rowq_producer;
grant execute on rowq.Publish to rowq_producer;
grant execute on rowq.PublishBatch to rowq_producer;
grant execute on rowq.Cancel to rowq_producer;
grant execute on rowq.CancelMany to rowq_producer;
grant execute on rowq.NextTicks to rowq_producer;
grant execute on rowq.GetResult to rowq_producer;
grant execute on rowq.WaitForResult to rowq_producer;
grant execute on rowq.Version to rowq_producer;
grant execute on type::rowq.message_list to rowq_producer;
grant execute on type::rowq.tie_list to rowq_producer;
grant execute on type::rowq.new_list to rowq_producer;
grant execute on type::rowq.given_list to rowq_producer;
grant execute on type::rowq.parsed_list to rowq_producer;
go
grant execute on rowq.DequeueFast to rowq_consumer;
grant execute on rowq.DequeueWait to rowq_consumer;
grant execute on rowq.Peek to rowq_consumer;
grant execute on rowq.Complete to rowq_consumer;
grant execute on rowq.RetryLater to rowq_consumer;
grant execute on rowq.FailNow to rowq_consumer;
grant execute on rowq.Release to rowq_consumer;
grant execute on rowq.ExtendLease to rowq_consumer;
grant execute on rowq.Maintain to rowq_consumer;
grant execute on rowq.Reap to rowq_consumer;
grant execute on rowq.Promote to rowq_consumer;
grant execute on rowq.Archive to rowq_consumer;
grant execute on rowq.QueueStats to rowq_consumer;
grant execute on rowq.Version to rowq_consumer;
grant execute on type::rowq.message_list to rowq_consumer;
grant execute on type::rowq.tie_list to rowq_consumer;
grant execute on type::rowq.new_list to rowq_consumer;
grant execute on type::rowq.given_list to rowq_consumer;
grant execute on type::rowq.parsed_list to rowq_consumer;
go
grant execute on rowq.ListSchedules to rowq_monitor;
grant execute on rowq.NextTicks to rowq_monitor;
grant execute on rowq.QueueStats to rowq_monitor;
grant execute on rowq.ListDead to rowq_monitor;
grant execute on rowq.ListClaims to rowq_monitor;
grant execute on rowq.ListDelayed to rowq_monitor;
grant execute on rowq.ListTopics to rowq_monitor;
grant execute on rowq.Health to rowq_monitor;
grant execute on rowq.Version to rowq_monitor;
grant execute on type::rowq.message_list to rowq_monitor;
grant execute on type::rowq.tie_list to rowq_monitor;
grant execute on type::rowq.new_list to rowq_monitor;
grant execute on type::rowq.given_list to rowq_monitor;
grant execute on type::rowq.parsed_list to rowq_monitor;
-- end of rights
go

-- [after committed]
commit transaction;
exec sys.sp_releaseapplock
    @Resource = N'rowq.migrate', @LockOwner = N'Session', @DbPrincipal = N'dbo';
revert;
go
set noexec off;
go
