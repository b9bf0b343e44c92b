-- Correct T-SQL that the gate must accept. test_tsql.py plants one fault at a time in it.
set quoted_identifier on;
set ansi_nulls on;
go
if schema_id(N'depot') is null
    exec (N'create schema depot');
go
create sequence depot.parcel_number as bigint start with 1 increment by 1 cache 1000;
go
create partition function depot_days (datetime2(6)) as range right for values ('2026-01-01');
go
create partition scheme depot_days as partition depot_days all to ([primary]);
go
if object_id(N'depot.shelf', N'U') is null
create table depot.shelf (
    shelf_id  int not null identity constraint pk_shelf primary key,
    name      nvarchar(100) collate Latin1_General_100_BIN2 not null,
    name_key  as cast(name as varbinary(200)) persisted not null,
    is_closed bit not null constraint df_shelf_is_closed default 0,
    index ux_shelf_name unique (name_key)
);
go
create table depot.parcel (
    shelf_id  int not null,
    seq       bigint not null,
    parcel_id bigint not null,
    attempt   smallint not null,
    constraint pk_parcel primary key clustered (shelf_id, seq, parcel_id)
        with (allow_page_locks = off)
);
alter table depot.parcel set (lock_escalation = disable);
go
create table depot.taken (
    shelf_id  int not null,
    taken_id  bigint not null,
    parcel_id bigint not null,
    attempt   smallint not null,
    until     datetime2(6) not null,
    constraint pk_taken primary key clustered (shelf_id, taken_id, parcel_id)
);
create index ix_taken_until on depot.taken (shelf_id, until) include (attempt);
go
create table depot.counted (
    shelf_id  int not null,
    taken_id  bigint not null,
    parcel_id bigint not null,
    attempt   smallint not null,
    until     datetime2(6) not null,
    constraint pk_counted primary key clustered (shelf_id, taken_id, parcel_id),
    constraint ck_counted_attempt check (attempt >= 0)
);
go
create table depot.gone (
    gone_at   datetime2(6) not null,
    parcel_id bigint not null,
    contents  nvarchar(max) null,
    constraint pk_gone primary key clustered (gone_at, parcel_id) on depot_days (gone_at)
) on depot_days (gone_at);
go
create or alter function depot.Microseconds (@now datetime2(6))
returns bigint
as
begin
    return datediff_big(microsecond, '1970-01-01', @now);
end;
go
create or alter procedure depot.InternalFindShelf
    @name nvarchar(max),
    @shelf_id int output
as
begin
    set nocount on;
    set @shelf_id = null;
    select @shelf_id = s.shelf_id
    from depot.shelf s with (forceseek)
    where s.name_key = cast(@name as varbinary(200));
    if @shelf_id is null
    begin
        declare @message nvarchar(2048) =
            concat(N'RQ701 queue_not_found: no shelf is named ', quotename(left(@name, 100)));
        throw 52701, @message, 1;
    end;
end;
go
create or alter procedure depot.Take
    @name nvarchar(max),
    @batch_size int = 1,
    @seconds float = null
as
begin
    set nocount on;
    set xact_abort on;
    set transaction isolation level read committed;
    declare @shelf_id int, @own bit = 0, @answer int, @now datetime2(6) = sysutcdatetime();
    declare @taken_id bigint = next value for depot.parcel_number;
    declare @kept table (parcel_id bigint not null primary key, attempt smallint not null);

    exec depot.InternalFindShelf @name = @name, @shelf_id = @shelf_id output;
    if @@trancount = 0
    begin
        set @own = 1;
        begin transaction;
    end;
    begin try
        with first_ones as (
            select top (@batch_size) p.shelf_id, p.seq, p.parcel_id, p.attempt
            from depot.parcel p with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where p.shelf_id = @shelf_id and p.seq >= 0
            order by p.seq, p.parcel_id
        )
        delete first_ones
        output deleted.shelf_id, @taken_id, deleted.parcel_id, deleted.attempt + 1,
               dateadd(second, isnull(@seconds, 30), @now)
        into depot.taken (shelf_id, taken_id, parcel_id, attempt, until)
        option (maxdop 1);

        update t
        set t.attempt += 1
        output inserted.parcel_id, inserted.attempt into @kept (parcel_id, attempt)
        from depot.taken t
        where t.shelf_id = @shelf_id and t.taken_id = @taken_id;

        insert into depot.gone (gone_at, parcel_id, contents)
        select @now, k.parcel_id, j.contents
        from @kept k
        cross apply openjson(N'[{"contents":"x"}]') with (contents nvarchar(max) '$.contents') j
        where k.attempt > 100;

        if @own = 1 commit transaction;
    end try
    begin catch
        if @own = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;

    exec @answer = sp_getapplock @Resource = N'depot', @LockMode = N'Exclusive',
        @LockOwner = N'Session', @LockTimeout = 0;
    if @answer >= 0
    begin
        waitfor delay '00:00:00.050';
        exec sp_releaseapplock @Resource = N'depot', @LockOwner = N'Session';
    end;

    select t.parcel_id, t.attempt, t.until, depot.Microseconds(t.until) as at
    from depot.taken t
    where t.shelf_id = @shelf_id and t.taken_id = @taken_id
    order by t.parcel_id;
end;
go
create or alter procedure depot.Store
    @name nvarchar(max),
    @contents nvarchar(max) = null
as
begin
    set nocount on;
    declare @shelf_id int;
    exec depot.InternalFindShelf @name, @shelf_id output;
    insert into depot.parcel (shelf_id, seq, parcel_id, attempt)
    values (@shelf_id, depot.Microseconds(sysutcdatetime()), next value for depot.parcel_number, 0);
    truncate table depot.gone with (partitions (1));
    delete s
    from depot.shelf s with (rowlock, forceseek)
    where s.name_key = cast(@name as varbinary(200))
      and is_closed = 1;
    update j
    set attempt = 0
    from depot.parcel j with (rowlock, forceseek)
    where j.shelf_id = @shelf_id
      and j.seq = 0;
    select s.name, f.seq
    from depot.shelf s
    outer apply (
        select top (1) p.seq
        from depot.parcel p with (forceseek (pk_parcel (shelf_id, seq)))
        inner join depot.shelf o with (forceseek) on o.name_key = s.name_key
        where p.shelf_id = s.shelf_id
          and p.seq = 0
    ) f
    where exists (
        select 1
        from depot.parcel p with (forceseek)
        where p.shelf_id = s.shelf_id
    );
    select @@rowcount as stored, string_agg(s.name, N',') as names, @contents as contents
    from depot.shelf s;
end;
go
if database_principal_id(N'depot_clerk') is null
    create role depot_clerk;
go
insert into depot.shelf (name)
select N'first'
where not exists (select 1 from depot.shelf s where s.name = N'first');
go
select concat(
           user_name(p.grantee_principal_id), N' has ',
           p.permission_name collate database_default, N' on ', u.name
       ) as words
from sys.database_permissions p
inner join sys.database_principals u on u.principal_id = p.major_id
where p.class_desc = N'DATABASE_PRINCIPAL'
union all
select case when s.is_closed = 1 then s.name collate database_default else o.name end
from depot.shelf s
cross join sys.objects o
where o.type_desc + N'.' collate database_default in (o.name, N'a.')
  and s.name in (select coalesce(x.name collate Latin1_General_100_BIN2, N'') from sys.types x);
select s.shelf_id
from depot.shelf s
inner join (values (N'first')) v (name) on v.name collate Latin1_General_100_BIN2 = s.name;
go
grant execute on depot.Take to depot_clerk;
