"""No session variable breaks, loses, steals or forges anything in any routine.

Compare a queue's life in a session with hostile values with one in a session without, in autocommit
and in transactions. Test the variables of internal_set_session alone, and the others in rounds with
a value of each; if a round differs, test its values one by one.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

import pymysql
import pytest

from tests.engines.base import Connection, Server
from tests.engines.mysql.accounts import open_account
from tests.engines.mysql.server import Session
from tests.helpers.calls import call
from tests.security.mysql.hostile_values import Variable, variables
from tests.security.mysql.life import Life, Seen
from tests.static.sources import unit_text

pytestmark = [pytest.mark.pitfall("mysql 21"), pytest.mark.slow("one session for each variable")]

Opened = Callable[[], Session]

MAY_END = {
    "default_regex_flags": {"1105", "RQ711"},
    "max_execution_time": {"1317", "3024"},
    "max_session_mem_used": {"1041", "1290", "1317"},
    "max_statement_time": {"1969", "3024", "1329", "1568"},
    "max_tmp_session_space_usage": {"200"},
    "skip_replication": {"1929"},
    "transaction_read_only": {"1792"},
    "tx_read_only": {"1792"},
}
"""Variables that may end the caller's calls with these errors and without changes.

An unknown flag of regular expressions; limits of memory, of time (which can end before a handler,
so its error appears) and of space; skip_replication, which cannot change in an open transaction; a
read-only transaction.
"""

DISTURBING = ("character_set_", "collation_", "sql_mode")
"""Variables that change how other variables' values are read."""

_PIN = unit_text("mysql", "internal/set_session")
PINNED = frozenset(re.findall(r"@@(?!global\.)(\w+)", _PIN))
"""One of these can cause rowq to set the others."""

SURELY_SET = {
    *("auto_increment_increment", "auto_increment_offset", "foreign_key_checks", "insert_id"),
    *("optimizer_switch", "sort_buffer_size", "sql_big_selects", "sql_mode"),
    *("sql_safe_updates", "timestamp", "time_zone", "unique_checks"),
}

_names = itertools.count(1)


@dataclass(frozen=True)
class Assignment:
    """A variable and its value in the session."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"


class Lives:
    """Lives in an account's sessions, compared with that of a session without settings."""

    def __init__(self, admin: Connection, open_session: Opened) -> None:
        self._admin = admin
        self._open = open_session
        self._is_mariadb = "mariadb" in admin.server_version.lower()
        self._plain = {is_open: self._lived([], is_open=is_open) for is_open in (False, True)}
        self.settable = list(self._settable())
        """The account's settable variables and values."""

    def _settable(self) -> Iterator[Variable]:
        for variable in variables(self._admin):
            with closing(self._open()) as session:
                values = [
                    value for value in variable.values if may_set(session, variable.name, value)
                ]
            if values:
                yield Variable(variable.name, tuple(values))

    def differences(self, assignments: list[Assignment], *, is_open: bool) -> list[str]:
        """Describe the differences from a session without settings."""
        seen = self._lived(assignments, is_open=is_open)
        words = ", ".join(map(str, assignments)) + " in a transaction" * is_open
        errors = set().union(*(MAY_END.get(assignment.name, ()) for assignment in assignments))
        if not self._is_mariadb and any(given.name == "insert_id" for given in assignments):
            errors.add("RQ711")  # MySQL cannot unset it
        if any(is_error(line, errors) for line in seen):
            # A life with a refused call differs: it may only have no other errors, leave no rows,
            # and leave no transaction open.
            return [f"{words}: {line}" for line in seen if not is_harmless(line, errors)]
        pairs = itertools.zip_longest(self._plain[is_open], seen)
        return [f"{words}: {line}, and not {usual}" for usual, line in pairs if line != usual]

    def _lived(self, assignments: list[Assignment], *, is_open: bool) -> Seen:
        before = f"set session {', '.join(map(str, assignments))}" if assignments else None
        with closing(self._open()) as session:
            name = f"life {next(_names)}"
            life = Life(session, self._admin, name, is_open=is_open, before=before)
            life.live()
        return life.seen


def may_set(session: Session, name: str, value: str) -> bool:
    """Set a session variable; return whether the account may."""
    try:
        session.execute(f"set session {name} = {value}")
    except pymysql.Error:
        return False
    return True


@pytest.fixture
def caller(connection: Connection, database_url: str) -> Iterator[Opened]:
    """Return a function that opens a session of an account with every role and no other rights."""
    with open_account(connection, database_url, "rowq_admin") as opened:
        yield opened


@pytest.fixture(scope="module")
def lives(server: Server, database_url: str) -> Iterator[Lives]:
    """Return the comparison of lives."""
    with (
        closing(server.connect(database_url, autocommit=True)) as admin,
        open_account(admin, database_url, "rowq_admin") as opened,
    ):
        yield Lives(admin, opened)


@pytest.mark.promise("P01", "P03", "P12", "P15", "P20")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("is_open", [False, True], ids=["calls", "transactions"])
def test_session_variables_do_not_change_behavior(lives: Lives, is_open: bool) -> None:
    wrong: list[str] = []
    for chosen in rounds(lives.settable):
        if lives.differences(chosen, is_open=is_open):
            wrong += [
                line
                for assignment in chosen
                for line in lives.differences([assignment], is_open=is_open)
            ] or [f"only together: {', '.join(map(str, chosen))}"]
    assert wrong == []


def rounds(settable: list[Variable]) -> Iterator[list[Assignment]]:
    """Yield each round's settings: all variables that do not affect the setting of others."""
    together: list[Variable] = []
    for variable in settable:
        if variable.name.startswith(DISTURBING) or variable.name in PINNED - MAY_END.keys():
            yield from ([Assignment(variable.name, value)] for value in variable.values)
        elif variable.name not in MAY_END:
            together.append(variable)
    for values in itertools.zip_longest(*(variable.values for variable in together)):
        yield [
            Assignment(variable.name, value)
            for variable, value in zip(together, values, strict=True)
            if value is not None
        ]


@pytest.mark.promise("P15")
@pytest.mark.parametrize("name", MAY_END)
def test_session_limit_ends_calls_and_leaves_nothing(lives: Lives, name: str) -> None:
    found = [variable for variable in lives.settable if variable.name == name]
    if not found:
        pytest.skip(
            "this server has no such variable, or no account may set it"
            "; to run it: another version, --engine mariadb"
        )
    for value, is_open in itertools.product(found[0].values, (False, True)):
        assert lives.differences([Assignment(name, value)], is_open=is_open) == []


def test_dangerous_variables_are_tested(connection: Connection, lives: Lives) -> None:
    names = {variable.name for variable in lives.settable}
    assert names >= SURELY_SET
    # MySQL requires a right to set max_error_count.
    assert ("max_error_count" in names) == ("mariadb" in connection.server_version.lower())
    assert len(names) > 100


def is_error(line: tuple[object, ...], numbers: set[str]) -> bool:
    """Return whether a recorded line is one of these errors."""
    return len(line) > 1 and isinstance(line[1], str) and line[1] in numbers


def is_harmless(line: tuple[object, ...], numbers: set[str]) -> bool:
    """Return whether a line may follow a refused call."""
    if line[0] in {"burnt", "left"}:
        return not line[-1]
    if line[1:2] == ("changed",):
        # A call that times out is ended in its handlers too; the next call restores the settings.
        return bool(numbers & MAY_END["max_statement_time"])
    if len(line) < 2 or not isinstance(line[1], str):
        return True
    # The server runs no handler of a call that times out, so its transaction may be open.
    is_closed = not line[-1] or bool(numbers & MAY_END["max_statement_time"])
    return is_closed and (line[1] in numbers or line[1].startswith("RQ7"))


@pytest.mark.promise("P15")
def test_next_call_restores_settings_of_a_killed_call(
    connection: Connection, caller: Opened
) -> None:
    with closing(caller()) as session:
        is_mariadb = "mariadb" in connection.server_version.lower()
        few, many = (", max_error_count = 7", ", max_error_count = 64") if is_mariadb else ("", "")
        session.execute(f"set session sql_safe_updates = 1, timestamp = 5{few}")
        look = "select @@sql_safe_updates, @@timestamp, @@max_error_count"
        before = session.execute(look).fetchone()
        # Set the session as internal_set_session leaves it before a kill.
        session.execute(
            "set @rowq_pinned = true, @rowq_insert_id = 0, @rowq_timestamp = @@timestamp,"
            " @rowq_increment = @@auto_increment_increment, @rowq_offset = @@auto_increment_offset,"
            " @rowq_unique_checks = @@unique_checks, @rowq_safe_updates = @@sql_safe_updates,"
            " @rowq_big_selects = @@sql_big_selects, @rowq_sort_buffer_size = @@sort_buffer_size,"
            " @rowq_max_error_count = @@max_error_count, @rowq_stats_expiry = 86400"
        )
        if is_mariadb:
            session.execute(
                "set @rowq_group_concat_max_len = @@group_concat_max_len,"
                " @rowq_tmp_disk_table_size = @@tmp_disk_table_size,"
                " @rowq_regex_flags = @@default_regex_flags, @rowq_snapshot_isolation = 1"
            )
        session.execute(f"set session sql_safe_updates = 0, timestamp = default{many}")
        call(session, "queue_stats")
        assert session.execute(look).fetchone() == before
