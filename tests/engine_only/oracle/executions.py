"""Executions of the statements of an installation's packages."""

from tests.engines.base import Connection
from tests.engines.oracle.server import OracleServer

_EXECUTIONS = """
    select s.sql_text, sum(s.executions)
    from v$sql s
    where s.parsing_schema_name = :owner
      and s.command_type in (2, 3, 6, 7)
    group by s.sql_text
    """


def executed(server: OracleServer, connection: Connection) -> dict[str, int]:
    """Return how often each statement of the session's schema has run, by its text."""
    found = server.query(_EXECUTIONS, owner=connection.username.upper())
    return {text.lower(): int(count) for text, count in found}
