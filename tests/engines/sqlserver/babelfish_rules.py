"""Rewrite T-SQL that Babelfish cannot execute.

rowq is written for SQL Server only. Rewritten batches have the same result for one session at a
time. Babelfish ignores lock hints, so tests there show nothing about concurrent sessions.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Replacement = str | Callable[[re.Match[str]], str]


@dataclass(frozen=True)
class Rule:
    """An unsupported construct, its pattern, and the replacement."""

    what: str
    pattern: re.Pattern[str]
    replacement: Replacement


def rule(
    what: str, pattern: str, replacement: Replacement, *, flags: re.RegexFlag = re.NOFLAG
) -> Rule:
    """Return the rule of a pattern."""
    return Rule(what, re.compile(pattern, flags), replacement)


def applied(rules: Iterable[Rule], text: str) -> str:
    """Apply rules to a text in order."""
    for each in rules:
        text = each.pattern.sub(each.replacement, text)
    return text


_PROCEDURE = re.compile(r"^create (?:or alter )?procedure rowq\.(\w+)", re.MULTILINE)
_CTE = (
    r"(?s)with head as \(\s*select top \((?P<limit>@\w+)\) (?P<columns>[\w., ]+)\s+"
    r"from (?P<table>rowq\.\w+) (?P<alias>\w+)\s+(?P<rest>.*?)\n\s*\)\n"
    r"\s*delete from head(?P<output>\n\s*output .*?)?(?:\n\s*option \([^;]*\))?;"
)
_NO_KEYS = {"attempt", "group_key", "holds_slot"}
"""Output columns of deletes that are in no key; they may be null."""

_DAYS = (
    r"alter partition scheme rowq_day next used \[PRIMARY\];\s*"
    r"alter partition function rowq_day\(\) split range \(@day\);"
    r"|truncate table rowq\.archived with \(partitions [^;]*;\s*"
    r"alter partition function rowq_day\(\) merge range \(@first\);"
)

_REFUSED_LOCKS = "sp_getapplock, which crashes the server if a session is refused five times"
_TURN = (
    r"select @turn = l\.lane\s+from rowq\.lane l with \([^)]*\)\s+where l\.queue_id = @queue_id\s+"
    r"and l\.lane = -21 /\* election \*/;"
)
_LOCK_OF_SESSION = (
    r"exec @turn = sys\.sp_getapplock[^;]*@LockOwner = N'Session',\s+@LockTimeout = @left_ms;"
)
_TRY = "cast(pg_try_advisory_lock(hashtext(cast(@lock as text))) as int)"
_TRY_TURN = "pg_try_advisory_xact_lock(hashtext(concat('rowq.maintain.', cast(@queue_id as text))))"


_OPENED = (
    "(select g.headers, cast(null as nvarchar(max)) as body_json,"
    " cast(jsonb_extract_path_text(cast(e.value as jsonb), 'body') as nvarchar(max)) as body,"
    " cast(decode(cast(g.text as varchar(max)), 'base64') as varbinary(max)) as body_binary"
    " from openjson(e.value) with (headers nvarchar(max) '$.headers' as json,"
    " text nvarchar(max) '$.body_base64') g) b"
)
"""A message of a batch, decoded by PostgreSQL's functions."""


def _joined(found: re.Match[str]) -> str:
    """Rewrite a delete from an ordered CTE as a delete joined with the query."""
    alias = found["alias"]
    names = [one.strip().removeprefix(f"{alias}.") for one in found["columns"].split(",")]
    keys = [name for name in names if name not in _NO_KEYS]
    same = " and ".join(f"head.{name} = gone.{name}" for name in keys)
    return (
        f"delete gone{found['output'] or ''}\nfrom {found['table']} gone\ninner join (\n"
        f"select top ({found['limit']}) {found['columns']}\n"
        f"from {found['table']} {alias} {found['rest']}\n) as head on {same};"
    )


def _read_first(found: re.Match[str]) -> str:
    """Rewrite a delete that outputs joined columns as a select and a delete."""
    return (
        f"insert into @links ({found['columns']})\n"
        f"select {found['what'].replace('deleted.', 'm.')}\n{found['source']};\n"
        "delete m\nfrom @messages j\ninner join rowq.message m"
        " on m.queue_id = @queue_id and m.message_id = j.message_id;"
    )


RULES = (
    rule(
        "descriptions as extended properties",
        r"(?s)declare @kind varchar\(9\).*?deallocate described;",
        "declare @described bit;",
    ),
    rule("delete from a CTE", _CTE, _joined),
    rule(
        "OUTPUT of a joined table in a delete",
        r"(?s)delete m\s+output (?P<what>[^;]*?)\s+into @links \((?P<columns>[^)]*)\)\s+"
        r"(?P<source>from @messages j[^;]*?);",
        _read_first,
    ),
    rule(
        "IIF of a column of DELETED",
        r"iif\(deleted\.holds_slot = 1, 0, 1\)",
        "1 - len(concat(deleted.holds_slot, N''))",
    ),
    rule(
        "IIF of a column of DELETED",
        r"iif\(deleted\.group_key is null, 0, 1\)",
        "sign(datalength(deleted.group_key))",
    ),
    rule("an OUTPUT parameter that is NVARCHAR(MAX)", r"nvarchar\(max\) output", "ntext output"),
    rule(
        "UPDATE with OUTPUT of a table outside of dbo",
        r"(?s)update q\n(?P<set>\s+set [^;]*?)\n\s+output deleted\.(?P<column>\w+)"
        r" into (?P<into>@\w+) \(\w+\)(?P<rest>\s+from [^;]*;)",
        r"insert into \g<into> select q.\g<column>\g<rest>\nupdate q\n\g<set>\g<rest>",
    ),
    rule(
        "WAITFOR",
        r"waitfor delay @(\w+);",
        r"select @\1 = @\1 from (select pg_sleep("
        r"cast(right(@\1, 6) as float)) as slept) s where s.slept is null;",
    ),
    rule(
        "a locked row that is skipped",
        _TURN,
        f"select @turn = -5 where cast({_TRY_TURN} as int) = 1;",
    ),
    rule(
        _REFUSED_LOCKS,
        _LOCK_OF_SESSION,
        f"select @turn = {_TRY} - 1;\nif @turn < 0\nselect @turn = @turn"
        " from (select pg_sleep(0.02) as slept) s where s.slept is null;",
    ),
    rule(
        _REFUSED_LOCKS,
        r"(?s)while applock_mode\(.*?\) <> N'NoLock'\s+exec sys\.sp_releaseapplock [^;]*;",
        "",
    ),
    rule(
        _REFUSED_LOCKS,
        r"exec sys\.sp_releaseapplock [^;]*;",
        "select @left_ms = cast(pg_advisory_unlock(hashtext(cast(@lock as text))) as int);",
    ),
    rule(
        "EXECUTE AS USER and REVERT",
        r"(?s)begin try\s+execute as user = N'dbo';\s+end try.*?end catch;",
        "",
    ),
    rule("EXECUTE AS USER and REVERT", r"\brevert;", ""),
    rule(
        "CREATE USER WITHOUT LOGIN: dbo is the owner",
        r"if user_id\(N'rowq_owner'\) is null\s+create user rowq_owner without login;"
        r"|grant alter any dataspace to rowq_owner;|drop user if exists rowq_owner;",
        "",
    ),
    rule(
        "CREATE USER WITHOUT LOGIN: dbo is the owner",
        r" authorization rowq_owner(?=;?')",
        " authorization dbo",
    ),
    rule("CREATE USER WITHOUT LOGIN: dbo is the owner", r"N'rowq_owner'", "N'dbo'"),
    rule("owners of roles", r" or u\.owning_principal_id <> user_id\(N'dbo'\)", ""),
    rule(
        "rights of a user to act as another user",
        r"(?s)\s+union all\s+select 4, N'rowq_owner is .*?(?=\s+union all\s+select 6)",
        "",
    ),
    rule(
        "security policies, and what constraints depend on",
        r"(?s)\s+union all\s+select 10, concat.*?(?=\n\) f\norder by)",
        "",
    ),
    rule("EXECUTE AS OWNER", r"\nwith execute as owner(?=\nas\n)", ""),
    rule("AUTHORIZATION", r"(?<=create role )(\w+) authorization dbo", r"\1"),
    rule("GRANT ON TYPE", r"grant execute on type::[^;]*;\s*", ""),
    rule("days of the archive", _DAYS, "break;"),
    rule(
        "a collation that counts a surrogate pair once, as all collations there do",
        r"Latin1_General_100_CI_AS_SC",
        "Latin1_General_CI_AS",
    ),
    rule("a number such as 1e6 is a float", r"(?<![\w.])(\d+e\d+)(?!\w)", r"cast(\1 as float)"),
    rule(
        "CONVERT of a float", r"convert\(nvarchar\(40\), @value\)", "cast(@value as nvarchar(40))"
    ),
    rule(
        "DATALENGTH counts 2 bytes per character",
        r"datalength\((@\w+)\) / 2",
        r"len(\1 + N'.') - 1",
    ),
    rule(
        "FOR JSON of binary values",
        r"(?<= )m\.body_binary(?=,\n(?:.*\n){1,16}?\s*for json path)",
        "replace(cast(encode(cast(m.body_binary as bytea), 'base64') as nvarchar(max)),"
        " nchar(10), N'') as body_binary",
    ),
    rule(
        "OPENJSON of binary values",
        r"(?s)openjson\(e\.value\) with \(\s+headers .*?'\$\.body_base64'\s+\) b",
        _OPENED,
    ),
    rule(
        "NEXT VALUE FOR with an order",
        r"(?<=next value for rowq\.message_seq) over \(order by p\.position\)([^;]*);",
        r"\1\norder by p.position;",
    ),
    rule("an index of a table variable", r",\n    index input_list_ix clustered \(position\)", ""),
    rule(
        "TRY_CAST, which leaves a transaction open if it fails",
        r"(?s)try_cast\((?P<text>\s+stuff\(.*?\)\s+as datetime2\(6\)\s+)\)",
        r"case when p.[key] = N'run_at' then try_cast(\g<text>) end",
    ),
    rule(
        "views of open transactions",
        r"(?s)if @is_allowed = 0\s+return;.*?(?=\nend\s*(?:go\s*)?$)",
        "return;",
    ),
    rule(
        "locks of a partitioned table",
        r"alter table rowq\.archived set \(lock_escalation = auto\);",
        "",
    ),
    rule(
        "the reported version",
        r"(?:d\.compatibility_level|cast\(serverproperty\('ProductMajorVersion'\) as int\))"
        r" < 1\d+",
        "1 = 0",
    ),
    rule(
        "the compatibility level",
        r"(?s)if \(select d\.compatibility_level.*?\) < 140\s+throw [^;]*;",
        "",
    ),
)


def rewrite(batch: str) -> str:
    """Return a batch, or several with `go` between them, that Babelfish executes."""
    batch = applied(RULES, batch)
    if created := _PROCEDURE.search(batch):
        batch = batch.replace("create or alter procedure", "create procedure", 1)
        return f"drop procedure if exists rowq.{created[1]}\ngo\n{batch}"
    return batch
