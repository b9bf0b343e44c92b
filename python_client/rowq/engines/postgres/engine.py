"""PostgreSQL through psycopg 3."""

# ruff: noqa: D102 - the methods are described in base.py

from collections.abc import Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    nullcontext,
    suppress,
)
from typing import Any, ClassVar

from rowq.engines.base import ListeningEngine, Row
from rowq.engines.postgres.async_waiting import dequeue_wait_async
from rowq.engines.postgres.calls import call_of
from rowq.engines.postgres.driver import (
    CONNECTION_GONE,
    NOT_SENT,
    READ_ONLY,
    ROLLED_BACK,
    SHORTAGE_CLASSES,
    ends_session,
    is_denied,
    load_driver,
    quoted,
    refusal_of,
    savepoint,
    savepoint_async,
    sqlstate_of,
    watch,
)
from rowq.engines.postgres.url import connection_parameters
from rowq.engines.postgres.waiting import dequeue_wait
from rowq.engines.sockets import has_input, is_of_the_network
from rowq.errors import CannotConnect, Refused

_BRIEF_WAITS = "set local lock_timeout = '50ms'"
_SESSION = "select pg_catalog.pg_backend_pid()"
# Timeout for cancelling a call.
_CANCEL_SECONDS = 1.0


class PostgresEngine(ListeningEngine):
    """PostgreSQL 15 and newer."""

    name = "postgres"
    schemes = ("postgresql", "postgres", "postgresql+psycopg")
    driver_package = "psycopg"
    other_drivers: ClassVar[Mapping[str, str]] = {"asyncpg": "rowq.contrib.asyncpg"}

    def connect(self, url: str) -> Any:
        psycopg = load_driver()
        parameters = connection_parameters(url)
        try:
            connection = psycopg.connect(**parameters, autocommit=True)
            # Behind a pooler, the next transaction may run in another session, which lacks the
            # prepared statements.
            if "prepare_threshold" not in parameters and not self.is_direct(connection):
                connection.prepare_threshold = None
        except (psycopg.Error, OSError, UnicodeError) as error:
            if isinstance(error, OSError) and not is_of_the_network(error):
                raise
            raise CannotConnect(f"PostgreSQL: {error}") from error
        # The driver sends it with every `begin`, so it works behind a pooler.
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return connection

    async def connect_async(self, url: str) -> Any:
        psycopg = load_driver()
        parameters = connection_parameters(url)
        try:
            connection = await psycopg.AsyncConnection.connect(**parameters, autocommit=True)
            if "prepare_threshold" not in parameters and not await self.is_direct_async(connection):
                connection.prepare_threshold = None
        except (psycopg.Error, OSError, UnicodeError) as error:
            if isinstance(error, OSError) and not is_of_the_network(error):
                raise
            raise CannotConnect(f"PostgreSQL: {error}") from error
        await connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
        return connection

    def call(self, connection: Any, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        psycopg = load_driver()
        call = call_of(routine)
        values = call.values(arguments)
        try:
            with psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row) as cursor:
                call.use_reader(cursor)
                cursor.execute(call.text, values, binary=True)
                return call.rows(cursor.fetchall())
        except (psycopg.Error, UnicodeEncodeError) as error:
            if refusal := self.refusal(error):
                raise refusal from error
            raise

    def call_briefly(
        self, connection: Any, routine: str, arguments: Mapping[str, Any]
    ) -> list[Row]:
        # The timeout ends with the transaction: behind a pooler others use the session.
        with connection.transaction():
            connection.execute(_BRIEF_WAITS)
            return self.call(connection, routine, arguments)

    async def call_async(
        self, connection: Any, routine: str, arguments: Mapping[str, Any]
    ) -> list[Row]:
        psycopg = load_driver()
        call = call_of(routine)
        values = call.values(arguments)
        try:
            async with psycopg.AsyncCursor(
                connection, row_factory=psycopg.rows.tuple_row
            ) as cursor:
                call.use_reader(cursor)
                await cursor.execute(call.text, values, binary=True)
                return call.rows(await cursor.fetchall())
        except (psycopg.Error, UnicodeEncodeError) as error:
            if refusal := self.refusal(error):
                raise refusal from error
            raise

    def dequeue_wait(self, connection: Any, arguments: Mapping[str, Any]) -> list[Row]:
        return dequeue_wait(self, connection, arguments)

    async def dequeue_wait_async(self, connection: Any, arguments: Mapping[str, Any]) -> list[Row]:
        return await dequeue_wait_async(self, connection, arguments)

    def is_direct(self, connection: Any) -> bool:
        return _is_own(connection, connection.execute(_SESSION).fetchone())

    async def is_direct_async(self, connection: Any) -> bool:
        return _is_own(connection, await (await connection.execute(_SESSION)).fetchone())

    def close(self, connection: Any) -> None:
        connection.close()

    async def close_async(self, connection: Any) -> None:
        await connection.close()

    def is_async(self, connection: Any) -> bool:
        return isinstance(connection, load_driver().AsyncConnection)

    def is_usable(self, connection: Any) -> bool:
        states = load_driver().pq.TransactionStatus
        status = connection.pgconn.transaction_status
        return status not in (states.ACTIVE, states.UNKNOWN) and _is_up(connection)

    def is_idle(self, connection: Any) -> bool:
        idle = load_driver().pq.TransactionStatus.IDLE
        return connection.pgconn.transaction_status == idle and _is_up(connection)

    def break_off(self, connection: Any) -> None:
        psycopg = load_driver()
        is_active = connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE
        # An older libpq cancels without a timeout.
        if is_active and psycopg.capabilities.has_cancel_safe():
            with suppress(psycopg.Error, OSError):
                connection.cancel_safe(timeout=_CANCEL_SECONDS)
        self.close(connection)

    def in_transaction(self, connection: Any) -> bool:
        if connection.closed:
            return False
        idle = load_driver().pq.TransactionStatus.IDLE
        return not connection.autocommit or connection.info.transaction_status != idle

    def transaction(self, connection: Any) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = connection.transaction()
        return context

    def savepoint(self, connection: Any) -> AbstractContextManager[None]:
        return savepoint(connection) if self.in_transaction(connection) else nullcontext()

    def savepoint_async(self, connection: Any) -> AbstractAsyncContextManager[None]:
        if not self.in_transaction(connection):
            return nullcontext()
        return savepoint_async(connection, (load_driver().Error,))

    def watch(self, connection: Any, target: str) -> None:
        watch(connection, target)

    def refusal(self, error: Exception) -> Refused | None:
        return refusal_of(error)

    def is_denied(self, error: Exception) -> bool:
        return is_denied(error)

    def grant(self, connection: Any, role: str, error: Exception) -> str:  # noqa: ARG002
        return f'"grant {role} to {quoted(connection.info.user)};"'

    def is_connection_lost(self, error: Exception) -> bool:
        if isinstance(error, CannotConnect):
            return True
        sqlstate = sqlstate_of(error)
        if not sqlstate:
            return isinstance(error, load_driver().OperationalError)
        gone = sqlstate in CONNECTION_GONE or sqlstate.startswith("08")
        return gone or ends_session(error)

    def was_sent(self, error: Exception) -> bool:
        return NOT_SENT not in str(error)

    def is_wrong_server(self, error: Exception) -> bool:
        return sqlstate_of(error) == READ_ONLY

    def is_rolled_back(self, error: Exception) -> bool:
        return sqlstate_of(error) in ROLLED_BACK and not ends_session(error)

    def is_shortage(self, error: Exception) -> bool:
        return sqlstate_of(error)[:2] in SHORTAGE_CLASSES


def _is_own(connection: Any, row: Row | None) -> bool:
    """Whether the session that answered _SESSION with this row is the connection's own.

    A pooler gives its clients process ids of its own.
    """
    return row == (connection.pgconn.backend_pid,)


def _is_up(connection: Any) -> bool:
    """Whether an idle connection is still up, as far as the client can see."""
    if has_input(connection.fileno()):
        # The server has sent a notice or closed the session; an empty query shows which.
        with suppress(load_driver().OperationalError):
            connection.pgconn.exec_(b"")
    return bool(connection.pgconn.status == load_driver().pq.ConnStatus.OK)


ENGINE = PostgresEngine()
