"""Sessions on MariaDB through libmariadb: statements with named values, written into the text."""

import pymysql
from pymysql.constants import CLIENT

from benchmarks.engines.mysql.wire import Connection, WireError
from benchmarks.harness.session import NAMED_VALUE, RetryError, Row, Session, Value
from rowq.engines.mysql.url import connection_parameters

_RETRY_NUMBERS = {1213, 1205, 1020}


class MariadbSession(Session):
    """A session through libmariadb; values are written into the text."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection = Connection(url)
        ((number,),) = self._connection.run(b"select connection_id()")
        self.backend = int(number or 0)

    def close(self) -> None:
        """Close the session."""
        self._connection.close()

    def run(self, statement: str, **values: Value) -> list[Row]:
        """Run a statement and return the rows of its first result."""
        return self.send(NAMED_VALUE.sub(lambda found: _text(values[found[1]]), statement))

    def send(self, text: str) -> list[Row]:
        """Run a statement without values, as `run` does."""
        try:
            rows = self._connection.run(text.encode())
        except WireError as error:
            if error.number in _RETRY_NUMBERS:
                raise RetryError(str(error)) from error
            raise
        self.affected = self._connection.affected
        return rows

    def script(self, text: str) -> None:
        """Run any number of statements; the server finds where each ends, bodies included."""
        given = connection_parameters(self.url)
        with (
            pymysql.connect(
                **given, autocommit=True, client_flag=CLIENT.MULTI_STATEMENTS
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(text)
            while cursor.nextset():
                pass


def _text(value: Value) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes | str):
        text = value.decode() if isinstance(value, bytes) else value
        return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
    return ", ".join(str(element) for element in value)
