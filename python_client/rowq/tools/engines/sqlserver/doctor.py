"""What matters to rowq on SQL Server and Azure SQL."""

from rowq.tools.doctor.check import EngineChecks, Setting, Status, is_one_of

_DATABASE = "select d.{} from sys.databases d where d.name = db_name()"

CHECKS = EngineChecks(
    now="select datediff_big(microsecond, '1970-01-01', sysutcdatetime()) / cast(1000000 as float)",
    # In Azure the numbers do not tell what the engine can do; it is always new enough.
    version=(
        "select iif(cast(serverproperty('EngineEdition') as int) in (5, 8), 99,"
        " cast(serverproperty('ProductMajorVersion') as int))"
    ),
    is_supported=lambda number: number is not None and number >= 14,
    supported="SQL Server 2017 or newer, Azure SQL",
    # It runs twice, and one "revert" ends one "execute as".
    before="""
        revert;
        if has_perms_by_name(quotename(db_name()), N'DATABASE', N'CONTROL') = 1
            execute as user = N'dbo';
    """,
    after="revert;",
    settings=(
        Setting(
            "updateability",
            "select cast(databasepropertyex(db_name(), 'Updateability') as nvarchar(60))",
            is_one_of("READ_WRITE"),
            Status.FAILED,
            "the database takes no writes: use the primary's URL, without read intent",
        ),
        Setting(
            "compatibility_level",
            _DATABASE.format("compatibility_level"),
            lambda value: value >= 140,
            Status.FAILED,
            "routines read JSON in ways that need 140: alter database ... set compatibility_level",
        ),
        Setting(
            "delayed_durability",
            _DATABASE.format("delayed_durability_desc"),
            lambda value: value != "FORCED",
            Status.WARNING,
            "messages of the last moment before a crash can be lost although they were committed",
        ),
        Setting(
            "is_auto_close_on",
            _DATABASE.format("is_auto_close_on"),
            lambda value: not value,
            Status.WARNING,
            "the database is closed between calls and opened again: alter database, set it off",
        ),
    ),
)
