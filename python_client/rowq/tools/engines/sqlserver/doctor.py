"""Checks on SQL Server and Azure SQL."""

from rowq.tools.doctor.check import EngineChecks, Setting, Status, is_one_of

_DATABASE = "select d.{} from sys.databases d where d.name = db_name()"

CHECKS = EngineChecks(
    now="select datediff_big(microsecond, '1970-01-01', sysutcdatetime()) / cast(1000000 as float)",
    # In Azure the version is always new enough, whatever its number.
    version=(
        "select iif(cast(serverproperty('EngineEdition') as int) in (5, 8), 99,"
        " cast(serverproperty('ProductMajorVersion') as int))"
    ),
    is_supported=lambda number: number is not None and number >= 14,
    supported="SQL Server 2017 or newer, Azure SQL",
    # This runs twice, and one "revert" ends one "execute as".
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
            "the database is read-only; use the primary's URL, without read intent",
        ),
        Setting(
            "compatibility_level",
            _DATABASE.format("compatibility_level"),
            lambda value: value >= 140,
            Status.FAILED,
            "routines need 140 to read JSON; run alter database ... set compatibility_level",
        ),
        Setting(
            "delayed_durability",
            _DATABASE.format("delayed_durability_desc"),
            lambda value: value != "FORCED",
            Status.WARNING,
            "a crash can lose the last committed messages",
        ),
        Setting(
            "is_auto_close_on",
            _DATABASE.format("is_auto_close_on"),
            lambda value: not value,
            Status.WARNING,
            "the database is closed and opened again between calls; alter the database, set it off",
        ),
    ),
)
