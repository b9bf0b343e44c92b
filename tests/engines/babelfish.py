"""What Babelfish, a PostgreSQL that speaks T-SQL, cannot execute as it is written for SQL Server.

The product is written for SQL Server and never bent for Babelfish. On the way to such a server, a
migration's batches are rewritten here into something that it executes with the same outcome for one
session after the other. Locks are not kept: Babelfish ignores every hint, so that nothing which
runs here shows how sessions meet on SQL Server.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rowq.migrate.sqlserver import backend
from rowq.migrate.sqlserver.sql import batches

IS_BABELFISH = "select cast(serverproperty('babelfish') as int)"
# Options of storage and the like, which Babelfish leaves out when it is told to.
_SETTINGS = """
    exec sp_babelfish_configure N'babelfishpg_tsql.escape_hatch_%', N'ignore', N'server'
"""
# The client asks for it, and Babelfish lacks it; names without a schema are looked up in dbo too.
_FUNCTIONS = """
    create function dbo.current_transaction_id() returns bigint as begin return txid_current(); end
"""
_PROCEDURE = re.compile(r"^create (?:or alter )?procedure rowq\.(\w+)", re.MULTILINE)
_CTE = re.compile(
    r"with head as \(\s*select top \((?P<limit>@\w+)\) (?P<columns>[\w., ]+)\s+"
    r"from (?P<table>rowq\.\w+) (?P<alias>\w+) (?P<rest>.*?)\n\s*\)\n"
    r"\s*delete from head(?P<output>\n\s*output .*?)?(?:\n\s*option \([^;]*\))?;",
    re.DOTALL,
)

_DAYS = re.compile(
    r"alter partition scheme rowq_day next used \[PRIMARY\];\s*"
    r"alter partition function rowq_day\(\) split range \(@day\);"
    r"|truncate table rowq\.archived with \(partitions [^;]*;\s*"
    r"alter partition function rowq_day\(\) merge range \(@first\);"
)


@dataclass(frozen=True)
class Rule:
    """One thing that Babelfish does not execute: what it is, where it stands, what is put there.

    is_left_out: whether what was there has no counterpart, so that it does not run at all.
    """

    what: str
    pattern: re.Pattern[str]
    replacement: str | Callable[[re.Match[str]], str]
    is_left_out: bool = False


def _joined(found: re.Match[str]) -> str:
    """Return a delete from an ordered CTE as a delete from the table, joined with that query."""
    alias = found["alias"]
    names = [one.strip().removeprefix(f"{alias}.") for one in found["columns"].split(",")]
    keys = [name for name in names if name != "attempt"]
    same = " and ".join(f"head.{name} = gone.{name}" for name in keys)
    return (
        f"delete gone{found['output'] or ''}\nfrom {found['table']} gone\ninner join (\n"
        f"select top ({found['limit']}) {found['columns']}\n"
        f"from {found['table']} {alias} {found['rest']}\n) as head on {same};"
    )


RULES = (
    Rule("delete from a CTE", _CTE, _joined),
    Rule(
        "cast in OUTPUT",
        re.compile(r"(?<=\S)(\s+)cast\((deleted\.\w+ \+ 1) as smallint\)"),
        r"\1\2",
    ),
    Rule(
        "index inside CREATE TYPE or DECLARE",
        re.compile(r",\s*index \w+ (?:non)?clustered \([^)]*\)"),
        "",
    ),
    Rule(
        "WAITFOR",
        re.compile(r"waitfor delay @(\w+);"),
        r"select @\1 = @\1 from (select pg_sleep("
        r"cast(right(@\1, 6) as float)) as slept) s where s.slept is null;",
    ),
    Rule("EXECUTE AS OWNER", re.compile(r"\nwith execute as owner(?=\nas\n)"), ""),
    Rule("AUTHORIZATION", re.compile(r"(?<=create role )(\w+) authorization dbo"), r"\1"),
    Rule("GRANT ON TYPE", re.compile(r"grant execute on type::[^;]*;\s*"), ""),
    Rule("days of the archive", _DAYS, "break;", is_left_out=True),
    Rule(
        "a collation that counts a pair of surrogates once, as all collations there do",
        re.compile(r"Latin1_General_100_CI_AS_SC"),
        "Latin1_General_CI_AS",
    ),
    Rule(
        "a number such as 1e6 is a float",
        re.compile(r"(?<![\w.])(\d+e\d+)(?!\w)"),
        r"cast(\1 as float)",
    ),
    Rule(
        "CONVERT of a float",
        re.compile(r"convert\(nvarchar\(40\), @value\)"),
        "cast(@value as nvarchar(40))",
    ),
    Rule(
        "DATALENGTH counts two bytes a character",
        re.compile(r"datalength\((@\w+)\) / 2"),
        r"len(\1 + N'.') - 1",
    ),
    Rule(
        "FOR JSON of binary values",
        re.compile(r"(?<= )m\.body_binary(?=,\n(?:.*\n){1,16}?\s*for json path)"),
        "replace(cast(encode(cast(m.body_binary as bytea), 'base64') as nvarchar(max)),"
        " nchar(10), N'') as body_binary",
    ),
    Rule(
        "locks of a partitioned table",
        re.compile(r"alter table rowq\.archived set \(lock_escalation = auto\);"),
        "",
    ),
    Rule(
        "the version it says it is",
        re.compile(
            r"(?:d\.compatibility_level|cast\(serverproperty\('ProductMajorVersion'\) as int\))"
            r" < 1\d+"
        ),
        "1 = 0",
    ),
    Rule(
        "the compatibility level",
        re.compile(r"if \(select d\.compatibility_level.*?\) < 140\s+throw [^;]*;", re.DOTALL),
        "",
    ),
)


@dataclass
class Ways:
    """How each procedure came into a Babelfish: what was rewritten in it, nothing at all mostly."""

    rewritten: dict[str, list[str]] = field(default_factory=dict)


WAYS = Ways()


def rewrite(batch: str) -> str:
    """Return a batch, or several with `go` between them, that Babelfish executes."""
    reasons = []
    for rule in RULES:
        batch, count = rule.pattern.subn(rule.replacement, batch)
        if count:
            reasons.append(rule.what)
    if created := _PROCEDURE.search(batch):
        WAYS.rewritten[created[1]] = reasons
        batch = batch.replace("create or alter procedure", "create procedure", 1)
        return f"drop procedure if exists rowq.{created[1]}\ngo\n{batch}"
    return batch


def is_babelfish(driver_connection: Any) -> bool:
    """Whether a connection of pyodbc's leads to a Babelfish."""
    return bool(driver_connection.execute(IS_BABELFISH).fetchval())


def prepare_server(driver_connection: Any) -> None:
    """Let a server leave out what it cannot store differently."""
    driver_connection.execute(_SETTINGS)


def prepare_database(driver_connection: Any) -> None:
    """Make what the client calls in a new database."""
    driver_connection.execute(_FUNCTIONS)


def teach_migrations() -> None:
    """From now on, migrations of this process rewrite what they send to a Babelfish."""
    if backend.Connection.execute is not _execute:
        backend.Connection.execute = _execute  # type: ignore[method-assign]


_original = backend.Connection.execute


def _execute(self: backend.Connection, text: str) -> list[str]:
    if is_babelfish(self.driver_connection):
        text = "\ngo\n".join(rewrite(batch) for batch in batches(text))
    return _original(self, text)
