"""Every routine is aborted in its middle: nothing is half done, nothing is lost.

The session, the call, the client, the session's server process, or the server is killed. The tables
and the calls are drawn at random.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from rowq.tools.migrate import migrate
from tests.chaos.breaking import Stand
from tests.chaos.broken_call import BrokenCall
from tests.chaos.killable import KillableServer
from tests.dice import LENGTH, dice, limit, times
from tests.engines.base import wait_until
from tests.helpers.dialects import interrupting_dialect_of

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.requires("waits"),
    pytest.mark.timeout(limit(240)),
]

Break = Callable[[KillableServer, list[BrokenCall]], None]

READS_NO_TABLE = {"next_ticks"}


@pytest.fixture(scope="module")
def stand(server: KillableServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Return a database with rowq to try the routines on."""
    url = server.server.fresh_database()
    migrate(url)
    yield Stand(server, url, tmp_path_factory.mktemp("calls"))
    server.server.drop_database(url)


def waiting(calls: list[BrokenCall]) -> list[BrokenCall]:
    """Return the calls that have not returned."""
    return [broken for broken in calls if not broken.caller.has_ended]


def kill_sessions(killable: KillableServer, calls: list[BrokenCall]) -> None:
    """Kill every waiting session, as an administrator would."""
    for broken in waiting(calls):
        killable.server.kill_session(broken.caller.session)


def interrupt_calls(killable: KillableServer, calls: list[BrokenCall]) -> None:
    """Cancel every waiting call, but not its session."""
    with closing(killable.server.connect(calls[0].caller.url)) as connection:
        dialect = interrupting_dialect_of(connection)
        for broken in waiting(calls):
            dialect.interrupt(connection, broken.caller.connection)
    for broken in calls:
        broken.caller.wait()


def kill_server(killable: KillableServer, calls: list[BrokenCall]) -> None:
    """Kill the server like a power failure."""
    del calls
    killable.crash()


def kill_backend(killable: KillableServer, calls: list[BrokenCall]) -> None:
    """Kill one session's process: PostgreSQL then ends all sessions and recovers."""
    left = waiting(calls)
    if killable.server.engine != "postgres" or not left:
        pytest.skip("sessions share a process there, or none waits; to run it: --engine postgres18")
    os.kill(left[0].caller.session, signal.SIGKILL)
    wait_until(lambda: not waiting(calls), "every session gets its error", 30)


BREAKS = [
    interrupt_calls,
    kill_backend,
    pytest.param(kill_server, marks=pytest.mark.requires("restart")),
]
A_FEW = 10
"""Number of routines per try in CI."""


def drawn_tries(stand: Stand, what: str) -> Iterator[tuple[str, list[BrokenCall]]]:
    """Yield a table to stop at and calls to try: a few routines, or all in a long run."""
    drawn = dice("broken calls", what, stand.killable.server.engine)
    for _ in range(times(1)):
        table = drawn.choice(stand.tables_of_messages())
        names = drawn.sample(sorted(stand.routines), min(times(A_FEW), len(stand.routines)))
        yield table, stand.prepare(names, drawn)


@pytest.mark.promise("P01", "P02", "P03", "P04", "P07", "P08", "P15")
@pytest.mark.parametrize("break_off", BREAKS, ids=lambda way: way.__name__)
def test_aborted_call_has_done_everything_or_nothing(stand: Stand, break_off: Break) -> None:
    _skip_what_cannot_be(stand, break_off)
    for table, calls in drawn_tries(stand, break_off.__name__):
        with stand.stopped_at(table, calls) as stopped:
            break_off(stand.killable, calls)
        print(f"{break_off.__name__} at {table}: {len(stopped)} of {len(calls)} calls")
        stand.judge(calls, f"{break_off.__name__} at {table}")


@pytest.mark.promise("P01", "P02", "P03", "P04", "P08")
def test_killed_client_has_done_everything_or_nothing(stand: Stand) -> None:
    for table, calls in drawn_tries(stand, "client"):
        with stand.in_a_program(table, calls) as process:
            process.kill()
        stand.judge(calls, f"client at {table}")


@pytest.mark.promise("P01", "P02", "P03", "P04", "P07", "P08", "P15")
def test_every_routine_is_killed_at_some_table(stand: Stand) -> None:
    """Each routine is stopped at some table and killed there, as late as possible."""
    drawn = dice("broken calls", "all", stand.killable.server.engine)
    tables = stand.tables_of_messages()
    drawn.shuffle(tables)
    # Every call except one begins with the queue table, so try it last.
    readers = set() if stand.readers_wait() else stand.readers()
    every = LENGTH > 1 or bool(readers)
    rounds = [*(tables if every else ["message", "claim"]), "queue", "meta"]
    left = set(stand.routines) - READS_NO_TABLE
    # drop_queue times out after 47 ms, before slow calls have stopped: try the remaining routines
    # alone.
    for table in [*rounds, "queue"]:
        calls = stand.prepare(sorted(stand.routines if LENGTH > 1 else left), drawn)
        with stand.stopped_at(table, calls) as stopped:
            kill_sessions(stand.killable, calls)
        stand.judge(calls, f"kill_sessions at {table}")
        left -= stopped
    assert left <= readers


def _skip_what_cannot_be(stand: Stand, break_off: Break) -> None:
    if break_off is interrupt_calls:
        with closing(stand.killable.server.connect(stand.url)) as connection:
            interrupting_dialect_of(connection)
    if break_off is kill_backend and stand.killable.server.engine != "postgres":
        pytest.skip(
            "only on PostgreSQL a session is a process, which can be killed"
            "; to run it: --engine postgres18"
        )
