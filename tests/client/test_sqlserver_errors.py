"""Errors of pyodbc, with the texts of both drivers."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

import rowq
from rowq.engines.sqlserver import engine
from rowq.engines.sqlserver.calls import call_of
from rowq.engines.sqlserver.driver import (
    message_of,
    numbers_of,
    rowq_error_of,
    signals_held,
    states_of,
    value_of,
)
from rowq.engines.sqlserver.engine import ENGINE
from rowq.session import OwnedSession
from tests.client import tds_listener as tds
from tests.client.signals import SoftLimit, interrupted
from tests.client.tds_listener import DRIVERS, TdsListener

pyodbc = pytest.importorskip(
    "pyodbc",
    reason="pyodbc does not load"
    "; to run it: apt-get install unixodbc, pip install 'rowq[sqlserver]'",
    exc_type=ImportError,
)

MICROSOFTS = "[Microsoft][ODBC Driver 18 for SQL Server]"
ORIGINS = [f"{MICROSOFTS}[SQL Server]", "[FreeTDS][SQL Server]"]
REFUSED = "RQ701 queue_not_found: no queue is named 'x'"


def error(text: str, kind: str = "ProgrammingError") -> Exception:
    """Return an error as pyodbc raises it: SQLSTATE and text."""
    made: Exception = getattr(pyodbc, kind)(text[1:6], text)
    return made


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize(
    "function", ["(SQLExecDirectW)", "(SQLMoreResults)", "(SQLExecute)", "(SQLParamData)"]
)
def test_refusal_is_recognized_from_every_odbc_call(origin: str, function: str) -> None:
    refusal = ENGINE.refusal(error(f"[42000] {origin}{REFUSED} (52701) {function}"))
    assert isinstance(refusal, rowq.QueueNotFound)
    assert str(refusal) == REFUSED


@pytest.mark.parametrize("origin", ORIGINS)
def test_refusal_is_recognized_among_other_messages(origin: str) -> None:
    more = f"[01000] {origin}The statement has been terminated. (3621)"
    for text in (
        f"[42000] {origin}{REFUSED} (52701) (SQLExecDirectW); {more}",
        f"[01000] {origin}A null value (8153) (SQLExecute); [42000] {origin}{REFUSED} (52701)",
    ):
        assert str(ENGINE.refusal(error(text))) == REFUSED


@pytest.mark.parametrize(
    "name", ["a (52701)", "a (52701) b", "x\ny", "]", "[42000] ", "'; drop", "RQ711 x: "]
)
def test_refusal_text_is_complete_with_quotes(name: str) -> None:
    expected = f"RQ701 queue_not_found: no queue is named '{name}'"
    refusal = ENGINE.refusal(error(f"[42000] {ORIGINS[0]}{expected} (52701) (SQLExecute)"))
    assert isinstance(refusal, rowq.QueueNotFound)
    assert str(refusal) == expected


@pytest.mark.parametrize(
    "text",
    [
        # A wrong number for this text.
        f"[42000] {ORIGINS[0]}{REFUSED} (50000) (SQLExecute)",
        # Another error quotes this text.
        f"[22018] {ORIGINS[0]}Conversion failed when converting '{REFUSED}' (245) (SQLExecute)",
        f"[42000] {ORIGINS[0]}Could not find stored procedure 'rowq.Peek'. (2812) (SQLExecute)",
        # An error of a migration, not of a routine.
        f"[42000] {ORIGINS[0]}RQ802 foreign_schema: x (52802) (SQLExecDirectW)",
    ],
)
def test_other_errors_are_not_refusals(text: str) -> None:
    assert ENGINE.refusal(error(text)) is None


def test_non_pyodbc_error_has_no_class() -> None:
    for error in (ValueError(REFUSED), OSError(5, "x"), KeyError("596")):
        assert ENGINE.refusal(error) is None
        assert not ENGINE.is_connection_lost(error)
        assert not ENGINE.is_transient(error)


@pytest.mark.parametrize(
    "text",
    [
        f"[08S01] {MICROSOFTS}TCP Provider: Error code 0x68 (104) (SQLExecDirectW)",
        f"[08S01] {MICROSOFTS}Communication link failure (0) (SQLExecDirectW)",
        f"[HYT01] {MICROSOFTS}Connection timeout expired (0) (SQLExecute)",
        f"[IMC06] {MICROSOFTS}The connection is broken. (0) (SQLExecute)",
        "[08S01] [FreeTDS][SQL Server]Read from the server failed (20004) (SQLExecDirectW)",
        "[08S01] [FreeTDS][SQL Server]Write to the server failed (20006) (SQLExecute)",
        "[HY000] [FreeTDS][SQL Server]Unexpected EOF from the server (20017) (SQLExecute)",
        f"[HY000] {ORIGINS[0]}Cannot continue the execution because the session is in the kill"
        " state. (596) (SQLExecDirectW)",
        f"[42000] {ORIGINS[0]}SHUTDOWN is in progress. (6005) (SQLExecDirectW)",
    ],
)
def test_lost_connection_is_recognized(text: str) -> None:
    assert ENGINE.is_connection_lost(error(text, "OperationalError"))
    assert ENGINE.is_transient(error(text, "OperationalError"))


def test_closed_connection_is_lost() -> None:
    for text in ("Attempt to use a closed connection.", "The cursor's connection has been closed."):
        assert ENGINE.is_connection_lost(pyodbc.ProgrammingError(text))


@pytest.mark.parametrize(
    ("number", "state"), [(1205, "40001"), (1204, "42000"), (983, "08004"), (0, "HYT00")]
)
def test_transient_error_is_not_a_lost_connection(number: int, state: str) -> None:
    for origin in ORIGINS:
        met = error(f"[{state}] {origin}Something ({number}) (SQLExecute)")
        assert ENGINE.is_transient(met)
        assert not ENGINE.is_connection_lost(met)


@pytest.mark.parametrize("number", [3952, 102, 208, 266])
def test_permanent_error_is_not_transient(number: int) -> None:
    met = error(f"[42000] {ORIGINS[0]}Something about 1205 and (596) (x) ({number}) (SQLExecute)")
    assert not ENGINE.is_transient(met)


def test_numbers_and_states_are_found() -> None:
    met = error(
        f"[23000] {ORIGINS[0]}Violation (2627) (SQLExecute);"
        f" [01000] {ORIGINS[0]}The statement has been terminated. (3621)"
    )
    assert numbers_of(met) == {2627, 3621}
    assert states_of(met) == {"23000", "01000"}


@pytest.mark.parametrize("origin", ORIGINS)
def test_server_message_is_extracted(origin: str) -> None:
    assert message_of(f"[01000] {origin}role rowq_admin (of 4) is missing (0)") == (
        "role rowq_admin (of 4) is missing"
    )
    assert message_of(f"{origin}two\nlines") == "two\nlines"
    assert message_of(f"[42000] {origin}first (3729) (SQLExecute); [01000] {origin}second (1)") == (
        "first"
    )
    assert message_of("unprefixed") == "unprefixed"


@pytest.fixture
def listener() -> Iterator[TdsListener]:
    started = TdsListener()
    yield started
    started.close()


@pytest.fixture(params=DRIVERS)
def connection(request: pytest.FixtureRequest, listener: TdsListener) -> Iterator[Any]:
    """Return a connection to the listener for each driver."""
    opened = ENGINE.connect(listener.url(request.param))
    # pyodbc queries the types at the first argument.
    _call(opened)
    yield opened
    ENGINE.close(opened)


def _call(connection: Any) -> list[Any]:
    arguments = dict.fromkeys(name for name, _ in call_of("pause_queue").parameters)
    return ENGINE.call(connection, "pause_queue", arguments | {"queue_name": "orders"})


AWKWARD = "RQ701 queue_not_found: no queue is named 'a (52701) [42000]; \u00e9\U0001f4a5\n'"
SAID = tds.error(0, "something else", severity=0)


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    "before",
    [
        b"",
        tds.DONE_MORE,
        SAID + tds.DONE_MORE,
        tds.row(1) + tds.DONE_MORE,
        tds.row(1) + tds.DONE_MORE + tds.row(2) + tds.DONE_MORE,
    ],
    ids=["at once", "after a count", "after a word", "after a row", "after two results"],
)
def test_refusal_is_raised_at_every_step(
    connection: Any, listener: TdsListener, before: bytes
) -> None:
    more = tds.error(3621, "The statement has been terminated.", severity=0)
    for text, after in ((REFUSED, b""), (AWKWARD, b""), (REFUSED, more)):
        listener.answers.append(before + tds.error(52701, text) + after + tds.FAILED)
        with pytest.raises(rowq.QueueNotFound) as refused:
            _call(connection)
        assert str(refused.value) == text
        listener.answers.append(tds.row(7) + tds.DONE)
        assert value_of(connection, "select 7") == 7


@pytest.mark.parametrize(
    ("number", "severity"), [(1205, 13), (1222, 13), (3960, 13), (40501, 13), (701, 13), (596, 21)]
)
def test_driver_raises_transient_errors(
    connection: Any, listener: TdsListener, number: int, severity: int
) -> None:
    listener.answers.append(tds.error(number, "Something (5)", severity=severity) + tds.FAILED)
    with pytest.raises(pyodbc.Error) as met:
        _call(connection)
    assert number in numbers_of(met.value)
    assert ENGINE.is_transient(met.value)
    assert ENGINE.is_connection_lost(met.value) == (severity == 21)


def test_connection_ended_in_a_call_is_lost(connection: Any, listener: TdsListener) -> None:
    listener.answers.append(b"")
    with pytest.raises(pyodbc.Error) as met:
        _call(connection)
    assert ENGINE.is_connection_lost(met.value)
    ENGINE.close(connection)
    assert not ENGINE.is_usable(connection)
    assert not ENGINE.in_transaction(connection)
    ENGINE.close(connection)
    with pytest.raises(pyodbc.Error) as met:
        _call(connection)
    assert ENGINE.is_connection_lost(met.value)


def test_server_notice_is_kept_in_its_words(connection: Any, listener: TdsListener) -> None:
    word = "role rowq_admin is missing (of 4)"
    listener.answers.append(tds.error(0, word, severity=0) + tds.DONE)
    with closing(connection.cursor()) as cursor:
        cursor.execute("print")
        assert [message_of(text) for _, text in cursor.messages] == [word]


def test_migration_remedy_is_complete(connection: Any, listener: TdsListener) -> None:
    text = "RQ803 missing_privilege: x is not an owner of y\nA DBA must run: alter role [x];"
    listener.answers.append(tds.error(52803, text) + tds.FAILED)
    with pytest.raises(pyodbc.Error) as met:
        value_of(connection, "select 1")
    assert rowq_error_of(met.value) == text


NOT_MENDED = f"{MICROSOFTS}The connection is broken and recovery is not possible. (0) (SQLExecute)"


@pytest.fixture(params=DRIVERS)
def session(request: pytest.FixtureRequest, listener: TdsListener) -> Iterator[OwnedSession]:
    """Return a session for each driver that has made one call."""
    opened = OwnedSession(listener.url(request.param), sleep=lambda _seconds: None)
    _purge(opened)
    yield opened
    opened.close()


def _purge(session: OwnedSession) -> list[Any]:
    """Make a call that must not be repeated once sent."""
    arguments = dict.fromkeys(name for name, _ in call_of("purge_queue").parameters)
    return session.call("purge_queue", arguments | {"queue_name": "orders"})


def _fail_once(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    """Let the next call fail as in Microsoft's driver, before sending."""
    failures = [failure]
    call = ENGINE.call

    def failing(connection: Any, routine: str, arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return call(connection, routine, arguments)

    monkeypatch.setattr(ENGINE, "call", failing)
    # Only FreeTDS connections are checked by a call.
    monkeypatch.setattr(ENGINE, "is_usable", lambda _connection: True)


@pytest.mark.parametrize("state", ["IMC01", "IMC02", "IMC03", "IMC04"])
def test_call_is_repeated_if_reopening_failed(
    session: OwnedSession, listener: TdsListener, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    logins, requests = len(listener.logins), len(listener.requests)
    _fail_once(monkeypatch, error(f"[{state}] {NOT_MENDED}", "OperationalError"))
    assert _purge(session) == []
    assert len(listener.logins) == logins + 1
    assert len(listener.requests) > requests


@pytest.mark.parametrize("state", ["08S01", "IMC05", "IMC06"])
def test_call_that_may_have_been_sent_is_not_repeated(
    session: OwnedSession, listener: TdsListener, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    logins = len(listener.logins)
    _fail_once(monkeypatch, error(f"[{state}] {NOT_MENDED}", "OperationalError"))
    with pytest.raises(
        rowq.ConnectionLost, match="connection lost during purge_queue; the call may or may not"
    ):
        _purge(session)
    assert len(listener.logins) == logins


@pytest.fixture
def _trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the check of connections, which the listener does not answer."""
    monkeypatch.setattr(ENGINE, "is_usable", lambda _connection: True)


@pytest.mark.usefixtures("_trusted")
def test_read_only_server_is_left_for_another(session: OwnedSession, listener: TdsListener) -> None:
    logins = len(listener.logins)
    text = "Failed to update database 'shop' because the database is read-only."
    listener.answers.append(tds.error(3906, text) + tds.FAILED)
    assert _purge(session) == []
    assert len(listener.logins) == logins + 1


@pytest.mark.usefixtures("_trusted")
def test_rolled_back_call_is_repeated_on_its_connection(
    session: OwnedSession, listener: TdsListener
) -> None:
    logins, requests = len(listener.logins), len(listener.requests)
    listener.answers.append(tds.error(1205, "deadlock", severity=13) + tds.FAILED)
    assert _purge(session) == []
    assert len(listener.logins) == logins
    assert len(listener.requests) > requests + 1


@pytest.mark.usefixtures("_trusted")
def test_connection_is_closed_after_a_foreign_exception(
    session: OwnedSession, listener: TdsListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_cursor: object) -> list[Any]:
        raise SoftLimit

    logins = len(listener.logins)
    with monkeypatch.context() as patch:
        patch.setattr(engine, "drain", interrupted)
        with pytest.raises(SoftLimit):
            _purge(session)
    assert session._connection is None
    assert _purge(session) == []
    assert len(listener.logins) == logins + 1


FORKS = """
import gc, os, sys
from rowq.engines.sqlserver.engine import ENGINE
from rowq.session import OwnedSession
from tests.client.test_sqlserver_errors import _purge

ENGINE.is_usable = lambda _connection: True
session, unused = OwnedSession(sys.argv[1]), OwnedSession(sys.argv[1])
_purge(session)
_purge(unused)
child = os.fork()
if child:
    os.waitpid(child, 0)
    _purge(unused)
del unused
gc.collect()
_purge(session)
"""


@pytest.mark.skipif(
    not hasattr(os, "fork"), reason="this system has no fork; to run it: Linux or macOS"
)
@pytest.mark.parametrize("driver", DRIVERS)
def test_child_does_not_use_parents_connections(driver: str, listener: TdsListener) -> None:
    command = [sys.executable, "-c", FORKS, listener.url(driver)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(listener.logins) == 3, "two of the parent, one of the child"


@pytest.mark.skipif(
    not hasattr(signal, "pthread_sigmask"),
    reason="no signals of Unix; to run it: Linux or macOS",
)
@pytest.mark.parametrize("kind", [SoftLimit, KeyboardInterrupt])
def test_signal_exception_in_a_call_is_raised(
    session: OwnedSession, listener: TdsListener, kind: type[BaseException]
) -> None:
    listener.seconds = 0.4
    before = len(listener.requests)
    with pytest.raises(kind), interrupted(0.2, kind()):
        _purge(session)
    assert len(listener.requests) == before + 1, "an interrupted call is not made again"


@pytest.mark.skipif(
    not hasattr(signal, "pthread_sigmask"),
    reason="no signals of Unix; to run it: Linux or macOS",
)
@pytest.mark.parametrize("driver", DRIVERS)
def test_signal_exception_during_connect_is_raised(driver: str, listener: TdsListener) -> None:
    listener.seconds = 0.4
    with pytest.raises(SoftLimit), interrupted(0.2, SoftLimit()):
        ENGINE.connect(listener.url(driver))


def test_signal_exception_while_blocking_unblocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mask = signal.pthread_sigmask
    before = mask(signal.SIG_BLOCK, [])

    def interrupted_mask(how: int, numbers: Any) -> Any:
        old = mask(how, numbers)
        # Python runs a handler inside this call, with the mask already set.
        if how == signal.SIG_BLOCK and numbers:
            raise KeyboardInterrupt
        return old

    monkeypatch.setattr(signal, "pthread_sigmask", interrupted_mask)
    with pytest.raises(KeyboardInterrupt), signals_held():
        pass
    assert mask(signal.SIG_BLOCK, []) == before
