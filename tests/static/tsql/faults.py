"""Faults to plant in sample.sql: right text, wrong text."""

SYNTAX = [
    ("create or alter procedure depot.Take", "create or alter procedur depot.Take"),
    ("begin try", "begin tri"),
    ("begin catch", "begin ctch"),
    ("end catch;", "end catc;"),
    ("where p.shelf_id = @shelf_id and p.seq >= 0", "where p.shelf_id = @shelf_id and"),
    (
        "with (rowlock, xlock, readpast, readcommittedlock, forceseek)",
        "with (rowlock, xlock, readpast, readcommittedlock, forceseek",
    ),
    (
        "with (rowlock, xlock, readpast, readcommittedlock, forceseek)",
        "with (rowlock, uplock, readpast, readcommittedlock, forceseek)",
    ),
    ("order by p.seq, p.parcel_id\n        )", "order by p.seq, p.parcel_id\n"),
    ("option (maxdop 1)", "option (maxdop)"),
    ("commit transaction;", "comit transaction;"),
    ("rollback transaction;", "rollback transacton;"),
    ("waitfor delay '00", "waitfor dellay '00"),
    ("set nocount on", "set nocout on"),
    ("isolation level read committed", "isolation level read comitted"),
    ("declare @kept table (parcel_id", "declare @kept tabel (parcel_id"),
    ("values (@shelf_id,", "valus (@shelf_id,"),
    ("next value for depot.parcel_number, 0", "next valu for depot.parcel_number, 0"),
    ("select top (@batch_size) p.shelf_id", "select top @batch_size p.shelf_id"),
    ("into depot.taken (shelf_id", "into into depot.taken (shelf_id"),
    ("set (lock_escalation = disable)", "set (lock_escalation = disabled)"),
    ("if @own = 1 commit", "if @own == 1 commit"),
    ("grant execute on depot.Take to depot_clerk", "grant execute on depot.Take for depot_clerk"),
    ("as range right for values", "as range rigth for values"),
    ("throw 52701, @message, 1", "throw 52701, @message"),
]

NAMES = [
    ("p.seq >= 0", "p.sequ >= 0"),
    ("from depot.taken t\n        where", "from depot.takn t\n        where"),
    (
        "from depot.shelf s with (forceseek)\n    where",
        "from depot.shelves s with (forceseek)\n    where",
    ),
    ("exec depot.InternalFindShelf @name = @name", "exec depot.InternalFindShelve @name = @name"),
    ("@name = @name, @shelf_id", "@nam = @name, @shelf_id"),
    ("deleted.parcel_id, deleted.attempt", "deleted.parcel_id, deleted.attempts"),
    ("inserted.parcel_id, inserted", "inserted.parcel, inserted"),
    ("select @shelf_id = s.shelf_id", "select @shelf = s.shelf_id"),
    ("grant execute on depot.Take to", "grant execute on depot.Takes to"),
    ("to depot_clerk;", "to depot_clerks;"),
    ("on depot_days (gone_at)\n)", "on depot_day (gone_at)\n)"),
    ("(shelf_id, until) include (attempt)", "(shelf_id, until) include (atempt)"),
    (
        "primary key clustered (shelf_id, seq, parcel_id)",
        "primary key clustered (shelf_id, seqq, parcel_id)",
    ),
    ("@now datetime2(6))\nreturns", "@now datetime3)\nreturns"),
    ("depot.Microseconds(t.until)", "depot.Microsecond(t.until)"),
    ("next value for depot.parcel_number;", "next value for depot.parcel_numbers;"),
    ("k.parcel_id, j.contents", "k.parcels, j.contents"),
    ("k.parcel_id, j.contents", "k.parcel_id, j.content"),
    ("where k.attempt > 100", "where kk.attempt > 100"),
    ("insert into depot.shelf (name)", "insert into depot.shelf (nam)"),
    ("first_ones\n        output", "last_ones\n        output"),
    (
        "depot.gone (gone_at, parcel_id, contents)\n        select",
        "depot.gone (gone_at, parcel_id, content)\n        select",
    ),
    ("into @kept (parcel_id, attempt)", "into @kept (parcel_id, attempts)"),
    ("declare @shelf_id int;\n", "declare @shelf_id int, @shelf_id int;\n"),
    ("Latin1_General_100_BIN2", "Latin1_General_100_BIN3"),
]

COUNTS_AND_ARGUMENTS = [
    ("select @now, k.parcel_id, j.contents", "select @now, k.parcel_id"),
    ("deleted.attempt + 1,\n", "\n"),
    ("values (@shelf_id, depot.Microseconds(sysutcdatetime()), next", "values (@shelf_id, next"),
    ("datediff_big(microsecond,", "datediff_big(microsec,"),
    ("isnull(@seconds, 30)", "isnul(@seconds, 30)"),
    ("xact_state()", "xact_stat()"),
    ("@@trancount = 0", "@@trancnt = 0"),
    ("exec depot.InternalFindShelf @name, @shelf_id output", "exec depot.InternalFindShelf @name"),
    (
        "exec depot.InternalFindShelf @name, @shelf_id output",
        "exec depot.InternalFindShelf @name, @shelf_id output, 1",
    ),
    ("@name = @name, @shelf_id = @shelf_id output", "@name = @name, @shelf_id = @shelf_id"),
    ("@Resource = N'depot', @LockMode", "@Resorce = N'depot', @LockMode"),
    ("string_agg(s.name, N',')", "string_agg(s.name)"),
    ("depot.Microseconds(t.until)", "depot.Microseconds(t.until, 1)"),
    ("isnull(@seconds, 30)", "isnull(@seconds)"),
    ("dateadd(second, ", "dateadd(secnd, "),
]

COLLATIONS = [
    ("p.permission_name collate database_default", "p.permission_name"),
    ("then s.name collate database_default", "then s.name"),
    ("o.type_desc + N'.' collate database_default in", "o.type_desc + N'.' in"),
    ("coalesce(x.name collate Latin1_General_100_BIN2, N'')", "coalesce(x.name, N'')"),
    ("v.name collate Latin1_General_100_BIN2 = s.name", "v.name = s.name"),
    (
        "select case when s.is_closed = 1 then s.name collate database_default",
        "select o.type_desc + case when s.is_closed = 1 then o.name",
    ),
]

HINTS_AND_NUMBERS = [
    ("(rowlock, xlock, readpast,", "(rowlock, updlock, readpast, readuncommitted,"),
    ("readpast, readcommittedlock, forceseek", "readpast, forceseek"),
    ("(rowlock, xlock,", "(rowlock, tablock, xlock,"),
    ("where p.shelf_id = @shelf_id and p.seq >= 0", "where p.seq >= 0"),
    (
        "from depot.taken t\n        where t.shelf_id",
        "from depot.taken t with (forceseek)\n        where t.shelf_id",
    ),
    ("s with (forceseek)\n    where s.name_key", "s\n    where s.name_key"),
    ("from depot.shelf s with (rowlock, forceseek)", "from depot.shelf s with (rowlock)"),
    (
        "delete s\n    from depot.shelf s with (rowlock, forceseek)\n    where s.name_key",
        "delete from depot.shelf with (rowlock, forceseek)\n    where name_key",
    ),
    ("o with (forceseek) on o.name_key", "o on o.name_key"),
    ("p with (forceseek (pk_parcel (shelf_id, seq)))", "p with (forceseek)"),
    ("select top (1) p.seq", "select p.seq"),
    (
        "        from depot.parcel p with (forceseek)\n        where p.shelf_id = s.shelf_id\n",
        "        from depot.parcel p with (forceseek)\n"
        "        inner join depot.taken t on t.parcel_id = p.parcel_id\n"
        "        where p.shelf_id = s.shelf_id\n",
    ),
    (
        "depot.parcel j with (rowlock, forceseek)",
        "depot.parcel j with (rowlock, forceseek (pk_parcel (shelf_id, seq)))",
    ),
    ("insert into depot.parcel (", "insert into depot.parcel with (readpast, readcommittedlock) ("),
    ("into depot.taken (shelf_id,", "into depot.counted (shelf_id,"),
    (
        "@taken_id bigint = next value for depot.parcel_number",
        "@taken_id bigint = isnull(next value for depot.parcel_number, 0)",
    ),
    ("select t.parcel_id, t.attempt, t.until", "select @answer = 1, t.attempt, t.until"),
    ("declare @message nvarchar(2048)", "declare @message nvarchar(max)"),
]
