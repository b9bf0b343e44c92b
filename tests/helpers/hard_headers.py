"""Headers that Python cannot parse, written into the table directly."""

import pytest

from rowq.engines import engine_for_connection
from tests.engines.base import Connection
from tests.helpers.dialects import dialect_of

# JSON that Python's parser refuses but a database can store.
HARD = {"digits": '{"n": ' + "1" * 5000 + "}", "depth": '{"a": ' * 3000 + "1" + "}" * 3000}


def put_headers(connection: Connection, message_id: int, headers: str) -> None:
    """Set headers that enqueue refuses; skip the test if the server refuses them."""
    engine = engine_for_connection(connection).name
    dialect = dialect_of(connection)
    if engine == "mysql":
        [(version,)] = dialect.execute(connection, "select version()").fetchall()
        if "mariadb" not in version.lower() or headers == HARD["depth"]:
            pytest.skip(
                "this server's json type refuses these headers; to run it: --engine postgres18"
            )
    table = "rowq_message" if engine == "oracle" else "rowq.message"
    update = f"update {table} set headers = %s where message_id = %s"
    dialect.execute(connection, update, [headers, message_id])
