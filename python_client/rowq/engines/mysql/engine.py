"""MySQL and MariaDB through PyMySQL.

Every routine is a procedure: the text of a call is fixed, the driver quotes the values, and the
result is one result set. PyMySQL keeps no SQLSTATE, so a refusal is recognized by the number at the
start of its text.
"""

# ruff: noqa: D102 - the methods are described in base.py

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any

from rowq.engines.base import Row, SynchronousEngine
from rowq.engines.mysql.calls import call_of
from rowq.engines.mysql.driver import (
    CHARACTER_SET,
    CONNECTION_GONE,
    PREVENTED_BY_OPTION,
    READ_ONLY,
    ROLLED_BACK,
    ROUTINE_DENIED,
    SHORTAGES,
    SURELY_FITS,
    WRONG_SERVER,
    account_of,
    check_character_set,
    check_size,
    drain,
    execute,
    interruption_of,
    load_driver,
    nested,
    number_of,
    outermost,
    text_of,
)
from rowq.engines.mysql.url import connection_parameters
from rowq.engines.sockets import end_when_silent, has_input
from rowq.engines.uncommitted import watch_by_methods
from rowq.errors import CannotConnect, Refused, refusal_from_text

# For rowq's own connections only; a caller's connection keeps its isolation level.
_READ_COMMITTED = "set session transaction isolation level read committed"


class MysqlEngine(SynchronousEngine):
    """MySQL 8.0 and newer, MariaDB 10.6 and newer."""

    name = "mysql"
    schemes = ("mysql", "mariadb", "mysql+pymysql", "mariadb+pymysql")
    driver_package = "pymysql"
    product = "MySQL and MariaDB"

    def connect(self, url: str) -> Any:
        pymysql = load_driver()
        parameters = connection_parameters(url)
        handled = sys.exception()
        try:
            connection = pymysql.connect(
                **parameters,
                # The driver's connect_timeout covers the first packet only.
                read_timeout=parameters["connect_timeout"],
                charset=CHARACTER_SET,
                autocommit=True,
                init_command=_READ_COMMITTED,
                program_name="rowq",
            )
        except (pymysql.Error, OSError, RuntimeError, UnicodeError) as error:
            if interruption := interruption_of(error, handled):
                raise interruption from None
            raise CannotConnect(f"MySQL: {text_of(error)}") from error
        connection._read_timeout = None
        end_when_silent(connection._sock.fileno())
        return connection

    def call(self, connection: Any, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        pymysql = load_driver()
        call = call_of(routine)
        values = call.values(arguments)
        check_character_set(connection)
        handled = sys.exception()
        has_transaction = self.in_transaction(connection)
        try:
            with pymysql.cursors.Cursor(connection) as cursor:
                statement = cursor.mogrify(call.text(values), values)
                if len(statement) > SURELY_FITS:
                    check_size(cursor, statement)
                cursor.execute(statement)
                return call.rows(drain(cursor))
        except pymysql.Error as error:
            if refusal := self.refusal(error):
                raise refusal from error
            if interruption := interruption_of(error, handled):
                raise interruption from None
            if not (has_transaction or self.is_connection_lost(error)):
                # If memory or temporary space runs out, the routine's error handlers do not run:
                # its own transaction is still open, and the caller must not commit it.
                with suppress(pymysql.Error):
                    connection.rollback()
            raise

    def call_briefly(
        self, connection: Any, routine: str, arguments: Mapping[str, Any]
    ) -> list[Row]:
        # MySQL's minimum is 1 second.
        seconds = 0 if "mariadb" in connection.server_version.lower() else 1
        execute(connection, f"set session innodb_lock_wait_timeout = {seconds}")
        return self.call(connection, routine, arguments)

    def close(self, connection: Any) -> None:
        if connection.open:
            with suppress(load_driver().Error, OSError):
                connection.close()

    def is_usable(self, connection: Any) -> bool:
        if not connection.open:
            return False
        # The server has closed the session, or sent a TLS record; a ping shows which.
        if has_input(connection._sock.fileno()):
            with suppress(load_driver().Error, OSError):
                connection.ping(reconnect=False)
                return bool(connection.open)
            self.close(connection)
            return False
        return True

    def is_idle(self, connection: Any) -> bool:
        return self.is_usable(connection) and not self.in_transaction(connection)

    def in_transaction(self, connection: Any) -> bool:
        return connection.open and (not connection.get_autocommit() or _has_begun(connection))

    def transaction(self, connection: Any) -> AbstractContextManager[Any]:
        if self.in_transaction(connection):
            return nested(connection)
        return outermost(connection)

    def watch(self, connection: Any, target: str) -> None:
        watch_by_methods(connection, target, _has_begun)

    def refusal(self, error: Exception) -> Refused | None:
        return refusal_from_text(text_of(error))

    def is_denied(self, error: Exception) -> bool:
        return number_of(error) == ROUTINE_DENIED

    def grant(self, connection: Any, role: str, error: Exception) -> str:
        account = account_of(error) or repr(connection.user.decode())
        return f'"grant {role} to {account};" and make it a default role of the account'

    def is_connection_lost(self, error: Exception) -> bool:
        if isinstance(error, CannotConnect):
            return True
        pymysql = load_driver()
        if isinstance(error, pymysql.InterfaceError):
            return True  # an earlier error has closed the connection
        number = number_of(error)
        out_of_step = isinstance(error, pymysql.InternalError) and number is None
        return number in CONNECTION_GONE or out_of_step

    def is_wrong_server(self, error: Exception) -> bool:
        number = number_of(error)
        is_option = number == PREVENTED_BY_OPTION and READ_ONLY.search(text_of(error))
        return number in WRONG_SERVER or bool(is_option)

    def is_rolled_back(self, error: Exception) -> bool:
        return number_of(error) in ROLLED_BACK

    def is_shortage(self, error: Exception) -> bool:
        return number_of(error) in SHORTAGES


def _has_begun(connection: Any) -> bool:
    """Whether a transaction is open, according to the server's last answer."""
    # If PyMySQL replaces mysqlclient, pymysql.constants may be another module.
    from pymysql.constants import SERVER_STATUS

    return bool(connection.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)


ENGINE = MysqlEngine()
