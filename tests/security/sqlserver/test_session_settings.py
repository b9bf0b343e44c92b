"""Each routine does and answers the same whatever the caller sets in its session.

The table holds every SET of the manual that a caller may use and that lets statements run. It
excludes `implicit_transactions` and `ansi_defaults`, which put each call into a transaction
(engine_only/sqlserver/test_transactions.py); `identity_insert` and `statistics profile` and `xml`,
which require rights; `offsets` and `fips_flagger`, which have no effect; and `showplan_*` and the
three below, which execute nothing.
"""

import re
from collections.abc import Callable

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, counts, enqueue
from tests.helpers.queues import Connect

SETTINGS = {
    "one row": "set rowcount 1",
    "short texts": "set textsize 10",
    "counts": "set nocount off",
    "abort": "set xact_abort on",
    "no abort": "set xact_abort off",
    "no abort on overflow": "set arithabort off",
    "no words on overflow": "set arithignore on",
    "no warnings": "set ansi_warnings off",
    "neither": "set ansi_warnings off; set arithabort off; set arithignore on",
    "no padding": "set ansi_padding off",
    "null is equal": "set ansi_nulls off",
    "columns are null": "set ansi_null_dflt_on on",
    "columns are not null": "set ansi_null_dflt_off on",
    "null is an empty text": "set concat_null_yields_null off",
    "rounding is an error": "set arithabort on; set numeric_roundabort on",
    "quotes are texts": "set quoted_identifier off",
    "day first": "set dateformat dmy",
    "year, day, month": "set dateformat ydm",
    "Wednesday first": "set datefirst 3",
    "German": "set language German",
    "Japanese": "set language Japanese",
    "no waiting": "set lock_timeout 0",
    "often the victim": "set deadlock_priority low",
    "never the victim": "set deadlock_priority 10",
    "cheap queries": "set query_governor_cost_limit 10",
    "order of tables": "set forceplan on",
    "dirty": "set transaction isolation level read uncommitted",
    "repeatable": "set transaction isolation level repeatable read",
    "serializable": "set transaction isolation level serializable",
    "snapshot": "set transaction isolation level snapshot",
    "context": "set context_info 0x726f7771",
    "cursors": "set cursor_close_on_commit on",
    "distributed": "set remote_proc_transactions on",
    "reads": "set statistics io on",
    "times": "set statistics time on",
}
NOTHING_RUNS = ("noexec", "fmtonly", "parseonly")


def set_to(session: Connection, statements: str) -> None:
    """Execute the statements one by one; one unknown to this server is a skip."""
    for statement in statements.split("; "):
        try:
            session.execute(statement)
        except Exception as error:
            if not re.search("not (currently )?supported", str(error)):
                raise
            pytest.skip(f"{statement}: {error}; to run it: another version")


@pytest.mark.promise("P15", "P20")
@pytest.mark.parametrize("setting", SETTINGS)
def test_session_settings_do_not_change_a_messages_life(
    connect: Connect, lives_as_in_a_clean_session: Callable[[Connection], None], setting: str
) -> None:
    session = connect()
    set_to(session, SETTINGS[setting])
    lives_as_in_a_clean_session(session)


@pytest.mark.promise("P15")
@pytest.mark.requires("genuine")
@pytest.mark.parametrize("setting", NOTHING_RUNS)
def test_session_that_executes_nothing_changes_nothing(
    connection: Connection, connect: Connect, queue_name: str, setting: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    enqueue(connection, queue_name, "x")
    session = connect()
    session.execute(f"set {setting} on")
    for statement in (
        f"exec rowq.Enqueue @queue_name = N'{queue_name}'",
        f"exec rowq.DequeueFast @queue_name = N'{queue_name}'",
        f"exec rowq.DropQueue @queue_name = N'{queue_name}', @force = 1",
    ):
        cursor = session.execute(statement)
        while cursor.nextset():
            pass
    session.execute(f"set {setting} off")
    assert counts(connection, queue_name) == (1, 0, 0, 0)
