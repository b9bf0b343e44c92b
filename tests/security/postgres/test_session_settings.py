"""All session settings with hostile values, around calls of all routines.

No routine may depend on them. A setting that makes the server refuse statements, such as a timeout,
may make a call fail without changes.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.helpers.calls import Row, call, call_one, dequeue, enqueue, state_of
from tests.security.postgres.conftest import Login, Session

REFUSES = {
    # These limit time, space and depth: the caller's calls fail or the session ends.
    "idle_in_transaction_session_timeout", "idle_session_timeout", "lock_timeout",
    "max_stack_depth", "statement_timeout", "transaction_timeout",
    # These make transactions read-only or serializable.
    "default_transaction_deferrable", "default_transaction_isolation",
    "default_transaction_read_only", "transaction_read_only", "transaction_isolation",
    # This changes the answers' encoding.
    "client_encoding",
}  # fmt: skip
ALONE = REFUSES | {"exit_on_error"}
"""These exclude all others; the last one ends a session that may not set it."""

NOT_A_SETTING = {"role", "session_authorization", "is_superuser", "seed"}
TEXTS = {
    "search_path": ["public", "''", "pg_temp, public"],
    "DateStyle": ["German, DMY", "SQL, MDY", "Postgres, YMD"],
    "TimeZone": ["Pacific/Kiritimati", "Pacific/Pago_Pago", "<+0545>-05:45"],
    "IntervalStyle": ["iso_8601"],
    "default_text_search_config": ["pg_catalog.simple"],
    "temp_tablespaces": ["''"],
    "default_tablespace": ["pg_default", "pg_global"],
    "application_name": ["'; drop schema rowq cascade; --"],
}
TEST_TIME = timedelta(minutes=10)


class BinaryCursor(psycopg.Cursor[tuple[object, ...]]):
    """Read values in binary: their text depends on the session's settings."""

    def execute(self, *arguments: Any, **options: Any) -> BinaryCursor:
        super().execute(*arguments, **{**options, "binary": True})
        return self


def user_settings(session: Session) -> Iterator[tuple[str, str]]:
    """Yield the name and the most unusual values of each session setting."""
    rows = session.execute(
        """
        select name, vartype, min_val, max_val, enumvals from pg_settings
        where context = 'user' and name <> all(%s)
        order by name
        """,
        [list(NOT_A_SETTING)],
    ).fetchall()
    for name, kind, least, greatest, words in rows:
        values: Any = (
            TEXTS.get(str(name))
            or {
                "bool": ["on", "off"],
                "enum": words or [],
                "integer": [least, greatest],
                "real": [least, greatest],
                "string": ["", "evil"],
            }[str(kind)]
        )
        for value in values:
            yield str(name), str(value)


def life(session: Session, owner: Session, queue: str) -> list[object]:
    """Call every routine and return all values that do not depend on the time."""
    now = datetime.now(UTC)

    def shape(row: Row, first: int) -> tuple[object, ...]:
        for value in vars(row).values():
            if isinstance(value, datetime):
                assert abs(value.astimezone(UTC) - now) < TEST_TIME, row
        return tuple(
            value - first if name == "message_id" else value
            for name, value in vars(row).items()
            if not isinstance(value, datetime)
            and name not in {"claim_id", "queue_name", "oldest_ready_seconds"}
        )

    call(session, "create_queue", queue_name=queue, archive_days=1, backoff_jitter=0)
    [first] = enqueue(session, queue, "naïve \\ ' \n", headers={"a": 1.5}, message_type="t")
    rows = call(
        session, "enqueue_batch", queue_name=queue,
        messages=[
            {"body": "b", "dedup_key": "k"}, {"body": "c", "priority": 0, "max_attempts": 1},
            {"body": "d", "dedup_key": "k"}, {"body_base64": "AP8=", "delay_seconds": 300},
        ],
    )  # fmt: skip
    rows += call(session, "enqueue", queue_name=queue, body="f", dedup_key="k")
    rows += call(session, "peek", queue_name=queue, max_messages=10)
    taken = dequeue(session, queue, 2)
    rows += taken
    claim_id = taken[0].claim_id
    rows += call(session, "extend_lease", queue_name=queue, claim_id=claim_id, lease_seconds=60)
    rows += call(
        session, "complete", queue_name=queue, claim_id=claim_id, message_ids=[first]
    )  # fmt: skip
    rows += call(session, "retry_later", queue_name=queue, claim_id=claim_id, error="e")
    waited = call_one(session, "dequeue_wait", queue_name=queue, wait_seconds=5).messages
    rows += call(session, "release", queue_name=queue, claim_id=waited[0]["claim_id"])
    claim_id = dequeue(session, queue)[0].claim_id
    rows += call(session, "fail_now", queue_name=queue, claim_id=claim_id, error="f")
    rows += call(session, "list_dead", queue_name=queue)
    rows += call(session, "reset", queue_name=queue)
    rows += call(session, "maintain", queue_name=queue)
    rows += call(session, "cancel", queue_name=queue, message_ids=[first + 1, first + 4])
    rows += call(session, "archive", queue_name=queue)
    rows += call(session, "get_message", queue_name=queue, message_id=first)
    rows += call(session, "queue_stats", queue_name=queue)
    names = {row.check_name for row in call(session, "health")}
    states = [state_of(owner, queue, first + place) for place in range(6)]
    partitions = owner.execute(
        """
        select pg_get_expr(c.relpartbound, c.oid) from pg_class c
        where c.relispartition and c.relnamespace = 'rowq'::regnamespace order by c.relname
        """
    ).fetchall()
    call(session, "drop_queue", queue_name=queue, force=True)
    return [*(shape(row, first) for row in rows), len(waited), names, states, partitions]


def rounds(settings: Iterator[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Yield the settings of a round: one value of each, or one tested alone."""
    together: dict[str, list[tuple[str, str]]] = {}
    for name, value in settings:
        if name in ALONE:
            yield [(name, value)]
        else:
            together.setdefault(name, []).append((name, value))
    for values in itertools.zip_longest(*together.values()):
        yield list(filter(None, values))


def set_all(session: Session, settings: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Set the allowed settings and return them."""
    done = []
    for name, value in settings:
        with contextlib.suppress(psycopg.Error):
            session.execute(sql.SQL("set {} = {}").format(sql.Identifier(name), sql.Literal(value)))
            done.append((name, value))
    return done


@pytest.mark.timeout(600)
@pytest.mark.promise("P05", "P10", "P12", "P16", "P20")
def test_session_settings_do_not_change_routines(installed: str, login: Login) -> None:
    """Test many settings at once.

    If the result differs, test them one by one.
    """
    url = login("caller", "rowq_admin", "rowq_producer", "rowq_consumer")
    queues = (f"life {number}" for number in itertools.count())
    with psycopg.connect(installed, autocommit=True) as owner:

        def lived(settings: list[tuple[str, str]]) -> tuple[list[object], int]:
            with psycopg.connect(url, autocommit=True, cursor_factory=BinaryCursor) as session:
                done = set_all(session, settings)
                queue = next(queues)
                try:
                    return life(session, owner, queue), len(done)
                except psycopg.Error as error:
                    if any(name not in REFUSES for name, _ in done):
                        return [f"{settings} keep a call from working: {error}"], len(done)
                call(owner, "create_queue", queue_name=queue)
                call(owner, "drop_queue", queue_name=queue, force=True)
                return wanted, len(done)

        wanted, tried = lived([])
        for settings in rounds(user_settings(owner)):
            found, count = lived(settings)
            tried += count
            if found != wanted:
                for setting in settings:
                    assert lived([setting])[0] == wanted, setting
                pytest.fail(f"only together: {settings}: {found}")
        assert tried > 200
