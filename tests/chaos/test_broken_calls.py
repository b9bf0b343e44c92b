"""Every routine of the contract is killed in its middle: nothing is done by half, nothing is lost.

What is killed is the session, the statement, the client, the server's process for a session, or
the server. The table at which the calls stand still is drawn.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from rowq.migrate import migrate
from tests.chaos.breaking import Stand
from tests.chaos.mortal import Mortal
from tests.chaos.trial import Trial
from tests.dice import AGAIN, dice, limit, times
from tests.engines.base import wait_until
from tests.helpers.dialects import dialect_of

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(limit(240))]

Break = Callable[[Mortal, list[Trial]], None]


@pytest.fixture(scope="module")
def stand(server: Mortal, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Return a database with rowq, where every routine is tried."""
    url = server.server.fresh_database()
    migrate(url)
    yield Stand(server, url, tmp_path_factory.mktemp("calls"))
    server.server.drop_database(url)


def waiting(trials: list[Trial]) -> list[Trial]:
    """Return the trials whose call has not come back."""
    return [one for one in trials if not one.caller.has_ended]


def kill_sessions(mortal: Mortal, trials: list[Trial]) -> None:
    """End every session that waits, as an administrator would."""
    for trial in waiting(trials):
        mortal.server.kill_session(mortal.server.session_id(trial.caller.connection))


def interrupt_calls(mortal: Mortal, trials: list[Trial]) -> None:
    """End every call that waits, and not its session."""
    with closing(mortal.server.connect(trials[0].caller.url)) as connection:
        for trial in waiting(trials):
            dialect_of(connection).interrupt(connection, trial.caller.connection)
    for trial in trials:
        trial.caller.wait()


def kill_server(mortal: Mortal, trials: list[Trial]) -> None:
    """Kill the server, as a power failure would."""
    del trials
    mortal.crash()


def kill_backend(mortal: Mortal, trials: list[Trial]) -> None:
    """Kill the process of one session: PostgreSQL then ends all the others, and recovers."""
    left = waiting(trials)
    if mortal.server.engine != "postgres" or not left:
        pytest.skip("a session is no process of its own there, or none waits")
    os.kill(mortal.server.session_id(left[0].caller.connection), signal.SIGKILL)
    wait_until(lambda: not waiting(trials), "every session is told", 30)


BREAKS: list[Break] = [kill_sessions, interrupt_calls, kill_backend, kill_server]


@pytest.mark.promise("P01", "P02", "P03", "P04", "P07", "P08", "P15")
@pytest.mark.parametrize("break_off", BREAKS, ids=lambda one: one.__name__)
def test_a_call_that_is_killed_anywhere_has_done_everything_or_nothing(
    stand: Stand, break_off: Break
) -> None:
    _skip_what_cannot_be(stand, break_off)
    drawn = dice("broken calls", break_off.__name__, stand.mortal.server.engine)
    for table in drawn.sample(stand.tables() * times(1), times(2)):
        trials = stand.prepare(drawn)
        with stand.stopped_at(table, trials) as stopped:
            break_off(stand.mortal, trials)
        print(f"{break_off.__name__} at {table}: {len(stopped)} calls, {AGAIN}")
        stand.judge(trials, f"{break_off.__name__} at {table}")


@pytest.mark.promise("P01", "P02", "P03", "P04", "P08")
def test_a_client_that_is_killed_in_a_call_leaves_everything_or_nothing(stand: Stand) -> None:
    drawn = dice("broken calls", "client", stand.mortal.server.engine)
    for table in drawn.sample(stand.tables() * times(1), times(2)):
        trials = stand.prepare(drawn)
        with stand.in_a_program(table, trials) as process:
            process.kill()
        stand.judge(trials, f"client at {table}")


def test_every_routine_comes_to_a_table_where_it_can_be_killed(stand: Stand) -> None:
    """So that none is left out: whatever the contract has is stopped somewhere, and broken off."""
    drawn = dice("broken calls", "all", stand.mortal.server.engine)
    left = set(stand.routines)
    tables = stand.tables()
    drawn.shuffle(tables)
    for table in sorted(tables, key=lambda one: one == "queue"):  # where nearly all begin: last
        if not left:
            break
        trials = [one for one in stand.prepare(drawn) if one.caller.routine.name in left]
        with stand.stopped_at(table, trials) as stopped:
            kill_sessions(stand.mortal, trials)
        stand.judge(trials, f"kill_sessions at {table}")
        left -= stopped
    assert left == set()


def _skip_what_cannot_be(stand: Stand, break_off: Break) -> None:
    with closing(stand.mortal.server.connect(stand.url)) as connection:
        if break_off is interrupt_calls and not dialect_of(connection).can_interrupt:
            pytest.skip("this engine ends sessions, and no single statement of another one")
    if break_off is kill_backend and stand.mortal.server.engine != "postgres":
        pytest.skip("only on PostgreSQL a session is a process, which can be killed")
