"""PostgreSQL through psycopg 3.

The text of a call is fixed per routine and names every parameter with its type, and values go as
text of unknown type: so psycopg prepares one statement per routine, whatever is null in a call.
"""

# ruff: noqa: D102 - the methods are described in base.py

import re
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from types import ModuleType
from typing import Any

from rowq.arguments import check_argument
from rowq.contract import load_contract
from rowq.engines.base import Ear, ListeningEngine, PipeliningEngine, Row, WorkTransaction
from rowq.engines.calls import inputs_of
from rowq.engines.json_columns import read_json
from rowq.engines.sockets import (
    IDLE_SECONDS,
    INTERVAL_SECONDS,
    PROBES,
    SILENT_SECONDS,
    has_input,
    is_of_the_network,
)
from rowq.errors import (
    REFUSALS,
    CannotConnect,
    DriverMissing,
    InvalidArgument,
    Refused,
    WrongTransactionState,
)

_DEFAULTS = {
    "fallback_application_name": "rowq",
    "connect_timeout": "10",
    "keepalives_idle": str(IDLE_SECONDS),
    "keepalives_interval": str(INTERVAL_SECONDS),
    "keepalives_count": str(PROBES),
    "tcp_user_timeout": str(SILENT_SECONDS * 1000),
}
_COMMITS_INSIDE_TRANSACTION = "2D000"
_CONNECTION_GONE = {"57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04"}
_READ_ONLY = "25006"
_UNDONE = {"40001", "40P01"}
_SHORTAGE_CLASSES = {"08", "40", "53", "55", "57", "58", "72"}
# What libpq says of a call that it has not begun to send.
_NOT_SENT = "another command is already in progress"
# Names that a session's search path decides about; the other types are words of the grammar.
_NAMED_TYPES = {"text", "bytea", "jsonb"}
_JSONB = 3802
_BRIEF_WAITS = "set local lock_timeout = '50ms'"
# How long telling the server that nobody waits for a call any more may take.
_CANCEL_SECONDS = 1.0
_PREPARE_THRESHOLD = re.compile(r"(?P<mark>[?&])prepare_threshold=(?P<value>[^&#]*)")
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


@dataclass(frozen=True, slots=True)
class _Call:
    """How to call one routine."""

    text: str
    parameters: tuple[tuple[str, str], ...]
    times: tuple[int, ...]
    has_json: bool

    def values(self, arguments: Mapping[str, Any]) -> list[str | bytes | None]:
        return [_spell(name, kind, arguments[name]) for name, kind in self.parameters]

    def use_reader(self, cursor: Any) -> None:
        """Let a cursor read JSON as rowq does, whatever the connection's owner has set."""
        if self.has_json:
            cursor.adapters.register_loader(_JSONB, _jsonb_loader())

    def rows(self, rows: list[Row]) -> list[Row]:
        return [self._in_utc(row) for row in rows] if self.times else rows

    def _in_utc(self, row: Row) -> Row:
        values = list(row)
        for position in self.times:
            if values[position] is not None:
                values[position] = values[position].astimezone(UTC)
        return tuple(values)


class PostgresEar(Ear):
    """Hears the notifications of a connection."""

    def __init__(self, connection: Any) -> None:
        """Begin to keep what comes with the answers to calls, too."""
        self._connection = connection
        self._heard: list[str] = []
        connection.add_notify_handler(lambda notify: self._heard.append(notify.payload))

    def hear(self, seconds: float) -> list[str]:
        self._collect()
        if not self._heard and has_input(self._connection.fileno(), seconds):
            self._connection.pgconn.consume_input()
            self._collect()
        heard, self._heard = self._heard, []
        return heard

    def is_deaf(self, other: Any, seconds: float) -> bool:
        token = uuid.uuid4().hex
        self._connection.execute("listen rowq")
        other.execute("select pg_catalog.pg_notify('rowq', %s)", [token])
        until = time.monotonic() + seconds
        while token not in self.hear(max(until - time.monotonic(), 0)):
            if time.monotonic() >= until:
                self._connection.execute("unlisten rowq")
                return True
        return False

    def _collect(self) -> None:
        while notify := self._connection.pgconn.notifies():
            self._heard.append(notify.extra.decode(errors="replace"))


class PostgresEngine(ListeningEngine, PipeliningEngine):
    """PostgreSQL 15 and newer."""

    name = "postgres"
    schemes = ("postgresql", "postgres", "postgresql+psycopg")
    driver_package = "psycopg"

    def connect(self, url: str) -> Any:
        psycopg = _driver()
        parameters = _connection_parameters(url)
        try:
            connection = psycopg.connect(**parameters, autocommit=True)
        except (psycopg.Error, OSError, UnicodeError) as error:
            if isinstance(error, OSError) and not is_of_the_network(error):
                raise
            raise CannotConnect(f"PostgreSQL: {error}") from error
        # Said with every `begin` of the driver's, so that no pooler has to keep it.
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return connection

    async def connect_async(self, url: str) -> Any:
        psycopg = _driver()
        parameters = _connection_parameters(url)
        try:
            connection = await psycopg.AsyncConnection.connect(**parameters, autocommit=True)
        except (psycopg.Error, OSError, UnicodeError) as error:
            if isinstance(error, OSError) and not is_of_the_network(error):
                raise
            raise CannotConnect(f"PostgreSQL: {error}") from error
        await connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
        return connection

    def call(self, connection: Any, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        psycopg = _driver()
        call = _call_of(routine)
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
        # The limit ends with the transaction: a session behind a pooler is another's next time.
        with connection.transaction():
            connection.execute(_BRIEF_WAITS)
            return self.call(connection, routine, arguments)

    def can_pipeline(self) -> bool:
        return bool(_driver().Pipeline.is_supported())

    def call_all(
        self, connection: Any, calls: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> list[list[Row]]:
        psycopg = _driver()
        made = [(_call_of(routine), arguments) for routine, arguments in calls]
        sent = [(call, call.values(arguments)) for call, arguments in made]
        cursors = []
        try:
            with connection.pipeline():
                for call, values in sent:
                    cursor = psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row)
                    call.use_reader(cursor)
                    cursors.append(cursor.execute(call.text, values, binary=True))
            rows = [cursor.fetchall() for cursor in cursors]
        except (psycopg.Error, UnicodeEncodeError) as error:
            if refusal := self.refusal(error):
                raise refusal from error
            raise
        return [call.rows(one) for (call, _), one in zip(sent, rows, strict=True)]

    async def call_async(
        self, connection: Any, routine: str, arguments: Mapping[str, Any]
    ) -> list[Row]:
        psycopg = _driver()
        call = _call_of(routine)
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

    def ear(self, connection: Any) -> Ear:
        return PostgresEar(connection)

    def close(self, connection: Any) -> None:
        connection.close()

    async def close_async(self, connection: Any) -> None:
        await connection.close()

    def is_async(self, connection: Any) -> bool:
        return isinstance(connection, _driver().AsyncConnection)

    def is_usable(self, connection: Any) -> bool:
        states = _driver().pq.TransactionStatus
        status = connection.pgconn.transaction_status
        return status not in (states.ACTIVE, states.UNKNOWN) and _is_up(connection)

    def is_idle(self, connection: Any) -> bool:
        idle = _driver().pq.TransactionStatus.IDLE
        return connection.pgconn.transaction_status == idle and _is_up(connection)

    def break_off(self, connection: Any) -> None:
        psycopg = _driver()
        is_active = connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE
        # An older libpq cancels without a limit of time.
        if is_active and psycopg.capabilities.has_cancel_safe():
            with suppress(psycopg.Error, OSError):
                connection.cancel_safe(timeout=_CANCEL_SECONDS)
        self.close(connection)

    def in_transaction(self, connection: Any) -> bool:
        if connection.closed:
            return False
        idle = _driver().pq.TransactionStatus.IDLE
        return not connection.autocommit or connection.info.transaction_status != idle

    def transaction(self, connection: Any) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = connection.transaction()
        return context

    def work_transaction(self, connection: Any) -> WorkTransaction:
        from rowq.engines.work.postgres import PostgresWork

        return PostgresWork(connection)

    def refusal(self, error: Exception) -> Refused | None:
        if isinstance(error, UnicodeEncodeError):
            return InvalidArgument(f"a text does not fit {error.encoding}: {error.reason}")
        sqlstate = _sqlstate(error)
        if sqlstate == _COMMITS_INSIDE_TRANSACTION:
            return WrongTransactionState("dequeue_wait was called inside a transaction")
        if refused := REFUSALS.get(sqlstate):
            return refused(_primary(error))
        return None

    def is_connection_lost(self, error: Exception) -> bool:
        if isinstance(error, CannotConnect):
            return True
        sqlstate = _sqlstate(error)
        if not sqlstate:
            return isinstance(error, _driver().OperationalError)
        gone = sqlstate in _CONNECTION_GONE or sqlstate.startswith("08")
        return gone or _ends_session(error)

    def was_sent(self, error: Exception) -> bool:
        return _NOT_SENT not in str(error)

    def is_wrong_server(self, error: Exception) -> bool:
        return _sqlstate(error) == _READ_ONLY

    def is_undone(self, error: Exception) -> bool:
        return _sqlstate(error) in _UNDONE and not _ends_session(error)

    def is_shortage(self, error: Exception) -> bool:
        return _sqlstate(error)[:2] in _SHORTAGE_CLASSES


def _driver() -> ModuleType:
    try:
        import psycopg
    except ImportError as error:
        hint = "PostgreSQL needs psycopg: pip install 'rowq[postgres]'"
        raise DriverMissing(hint) from error
    return psycopg


def _connection_parameters(url: str) -> dict[str, Any]:
    """Return the URL's parameters over rowq's; a malformed URL may hold a secret: not shown."""
    psycopg = _driver()
    scheme, separator, rest = url.partition("://")
    libpq_part, prepare = _split_prepare_threshold(f"{scheme.partition('+')[0]}{separator}{rest}")
    try:
        given = psycopg.conninfo.conninfo_to_dict(libpq_part)
    except psycopg.ProgrammingError:
        raise CannotConnect("PostgreSQL: the URL is malformed") from None
    return {**_DEFAULTS, **given, **prepare, "client_encoding": "utf8"}


def _split_prepare_threshold(url: str) -> tuple[str, dict[str, int | None]]:
    """Take psycopg's own parameter out of a URL; libpq does not know it.

    A number of calls after which a statement is prepared, or `none`: never, as behind a pooler that
    gives every transaction another session.
    """
    match = _PREPARE_THRESHOLD.search(url)
    if not match:
        return url, {}
    value = match["value"].lower()
    if value != "none" and not value.isdecimal():
        raise CannotConnect("PostgreSQL: prepare_threshold is a number or none")
    rest = url[match.end() :].removeprefix("&")
    url = f"{url[: match.start()]}{match['mark']}{rest}".rstrip("?&")
    return url, {"prepare_threshold": None if value == "none" else int(value)}


@cache
def _jsonb_loader() -> type[Any]:
    class JsonbLoader(_driver().adapt.Loader):  # type: ignore[misc]
        format = _driver().pq.Format.BINARY

        def load(self, data: Any) -> Any:
            # Behind one byte, the version of the format.
            return read_json(bytes(data)[1:])

    return JsonbLoader


@cache
def _call_of(routine: str) -> _Call:
    contract = load_contract()
    entry = contract.routine(routine)
    parameters = inputs_of(routine)
    given = ", ".join(
        f"p_{name} => %s::{_type_name(contract.types[kind]['postgres'])}"
        for name, kind in parameters
    )
    columns = ", ".join(column.name for column in entry.columns)
    text = (
        f"call rowq.{routine}({given})"
        if entry.kind == "procedure"
        else f"select {columns} from rowq.{routine}({given})"  # noqa: S608 - from the contract
    )
    times = (place for place, one in enumerate(entry.columns) if one.type == "timestamp")
    has_json = any(column.type == "json" for column in entry.columns)
    return _Call(text, parameters, tuple(times), has_json)


def _is_up(connection: Any) -> bool:
    """Whether a connection in no call has not ended, as far as this side can see."""
    if has_input(connection.fileno()):
        # An idle server speaks for a notice or a farewell; which one, an empty query tells.
        with suppress(_driver().OperationalError):
            connection.pgconn.exec_(b"")
    return bool(connection.pgconn.status == _driver().pq.ConnStatus.OK)


def _type_name(name: str) -> str:
    return f"pg_catalog.{name}" if name in _NAMED_TYPES else name


def _spell(name: str, kind: str, value: Any) -> str | bytes | None:
    """Return an argument as PostgreSQL reads it; raises InvalidArgument when it cannot be sent."""
    checked = check_argument(name, kind, value)
    match checked:
        case None | bytes():
            return checked
        case str():
            _refuse_nul(name, kind, checked)
            return checked
        case bool():
            return "true" if checked else "false"
        case datetime():
            return checked.isoformat()
        case list():
            return "{" + ",".join(map(str, checked)) + "}"
        case _:
            return repr(checked)


def _refuse_nul(name: str, kind: str, text: str) -> None:
    # The plain search costs next to nothing, and nearly every text ends there.
    is_escaped = kind == "json" and r"\u0000" in text and _ESCAPED_NUL.search(text)
    if "\0" in text or is_escaped:
        raise InvalidArgument(f"{name} holds a NUL character; send such a body as bytes")


def _primary(error: Any) -> str:
    return error.diag.message_primary or str(error)


def _sqlstate(error: Exception) -> str:
    return getattr(error, "sqlstate", None) or ""


def _ends_session(error: Any) -> bool:
    """Whether the server said that it ends the session, whatever the reason."""
    return error.diag.severity_nonlocalized in {"FATAL", "PANIC"}


ENGINE = PostgresEngine()
