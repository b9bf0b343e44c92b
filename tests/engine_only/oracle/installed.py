"""Everything that a migration creates in a schema, and interrupted migrations."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import oracledb
import pytest

from rowq.contract import sql_directory
from rowq.engines.oracle.url import connection_parameters
from rowq.tools.engines.oracle.script import units
from tests.engines.base import Connection
from tests.engines.oracle.server import OracleServer
from tests.engines.oracle.session import owner_in

Snapshot = dict[str, list[str]]

QUERIES = {
    "columns": """
        select c.table_name, c.column_id, c.column_name, c.data_type, c.data_length, c.char_used,
            c.data_precision, c.data_scale, c.nullable
        from user_tab_columns c
        """,
    "tables": "select t.table_name, t.iot_type, t.ini_trans, t.pct_free from user_tables t",
    "indexes": """
        select i.table_name, i.index_name, i.uniqueness, i.ini_trans, c.column_position,
            c.column_name
        from user_indexes i
        join user_ind_columns c on c.index_name = i.index_name
        """,
    "constraints": """
        select c.table_name, c.constraint_name, c.constraint_type, c.status
        from user_constraints c
        where c.generated = 'USER NAME'
        """,
    "sequences": "select s.sequence_name, s.cache_size, s.order_flag from user_sequences s",
    "objects": """
        select o.object_name, o.object_type, o.status
        from user_objects o
        where o.generated = 'N' and o.object_type not in ('LOB', 'INDEX')
        """,
    "sources": "select s.name, s.type, s.line, s.text from user_source s",
    "rights": "select p.table_name, p.grantee, p.privilege from user_tab_privs_made p",
    "meta": "select m.name, m.value from rowq_meta m",
}
SQLPLUS = ("sqlplus", "sql")
"""SQL*Plus and SQLcl, which run the same scripts."""


def snapshot(session: Connection) -> Snapshot:
    """Return everything that is installed."""
    return {name: sorted(map(str, rows(session, query))) for name, query in QUERIES.items()}


def rows(session: Connection, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    with closing(session.cursor()) as cursor:
        return list(cursor.execute(query))


def objects(session: Connection) -> list[str]:
    """Return the names of everything in the schema."""
    query = "select o.object_name from user_objects o where o.generated = 'N'"
    return [name for (name,) in rows(session, query)]


def run_sources(session: Connection, name: str) -> None:
    """Run a script of sql/oracle, and those that it includes, as SQL*Plus would."""
    text = (sql_directory() / "oracle" / name).read_text(encoding="utf-8")
    parts = re.split(r"^@@(\S+)$", text, flags=re.MULTILINE)
    for index, part in enumerate(parts):
        if index % 2:
            run_sources(session, part)
            continue
        for unit in units(part):
            with closing(session.cursor()) as cursor:
                cursor.execute(unit)


def grant(server: OracleServer, url: str, *rights: str) -> None:
    """Grant privileges to an account; skip the test if the tests' account may not."""
    for right in rights:
        try:
            server.execute(f"grant {right} to {owner_in(url)}")
        except oracledb.DatabaseError as error:
            pytest.skip(f"the account may not grant {right}: {error}; to run it: use another one")


def breaking_off(after: int) -> Callable[[str], Iterator[str]]:
    """Return a splitter of scripts that fails after `after` units."""
    left = [after]

    def split(text: str) -> Iterator[str]:
        for unit in units(text):
            if left[0] <= 0:
                raise ConnectionAbortedError
            left[0] -= 1
            yield unit

    return split


def sqlplus(url: str, text: str) -> subprocess.CompletedProcess[str]:
    """Run a text in SQL*Plus or SQLcl, in the folder of the sources; skip the test without one.

    The password is part of the input, because other accounts can see the command line.
    """
    program = next((found for name in SQLPLUS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("neither sqlplus nor sql; to run it: install SQL*Plus or SQLcl")
    parts = connection_parameters(url)
    address = f"//{parts['host']}:{parts['port']}/{parts['service_name']}"
    login = f'connect {parts["user"]}/"{parts["password"]}"@{address}\n'
    return subprocess.run(
        [program, "-S", "/nolog"],
        input=f"whenever sqlerror exit failure\n{login}{text}\nexit success\n",
        text=True,
        cwd=sql_directory() / "oracle",
        capture_output=True,
        check=False,
    )
