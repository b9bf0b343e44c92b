"""Headers that Python cannot read, put into the table behind enqueue's limits."""

import pytest

from rowq.engines import engine_for_connection
from tests.engines.base import Connection
from tests.helpers.dialects import dialect_of

# What Python's reader refuses, though a database can hold it.
HARD = {
    "digits": '{"n": ' + "1" * 5000 + "}",
    "depth": '{"a": ' * 3000 + "1" + "}" * 3000,
}


def put_headers(connection: Connection, message_id: int, headers: str) -> None:
    """Give a stored message headers that enqueue refuses; skips where the server refuses, too."""
    engine = engine_for_connection(connection).name
    dialect = dialect_of(connection)
    if engine == "mysql":
        [(version,)] = dialect.execute(connection, "select version()").fetchall()
        if "mariadb" not in version.lower() or headers == HARD["depth"]:
            pytest.skip(
                "this server's type json does not hold these headers"
                "; to run it: --engine postgres18"
            )
    table = "rowq_message" if engine == "oracle" else "rowq.message"
    update = f"update {table} set headers = %s where message_id = %s"
    dialect.execute(connection, update, [headers, message_id])
