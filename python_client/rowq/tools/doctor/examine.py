"""What an examination looks at, and in which order.

The check of rights calls each routine so that it must refuse, and change nothing. The round trip
sends one message through a queue of its own, which is dropped at the end.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rowq
from rowq.contract import load_contract
from rowq.engines import engine_for_connection, is_driver_error
from rowq.errors import QueueBusy, RowqError
from rowq.queue import Queue
from rowq.tools import migrate
from rowq.tools.doctor.check import (
    Check,
    EngineChecks,
    Setting,
    Status,
    be_no_more_than_the_owner,
    checks_of,
    line_of,
    session,
    value_of,
)
from rowq.tools.migrate import MigrationError, MissingPrivilege
from rowq.tools.rights import may_call

_CALLED = ("create_queue", "enqueue", "dequeue_fast", "complete", "drop_queue")
_PATIENCE_SECONDS = 30.0

_INSTALLED = "installed"
_SKEW_SECONDS = 1.0
_OF_HEALTH = {"critical": Status.FAILED, "warning": Status.WARNING}


def round_trip(connection: Any) -> Iterator[Check]:
    """Yield one check: whether a message is delivered as it was sent, and in which time."""
    routines = load_contract().of(engine_for_connection(connection).name)
    lacks = [name for name in _CALLED if not may_call(connection, routines[name])]
    if lacks:
        yield Check("round trip", Status.UNKNOWN, f"this account may not call {', '.join(lacks)}")
        return
    try:
        yield _sent(Queue(connection))
    except Exception as error:
        if not (isinstance(error, RowqError) or is_driver_error(error)):
            raise
        words = f"{type(error).__name__}: {line_of(error)}"
        yield Check("round trip", Status.FAILED, words)


def _sent(queue: Queue) -> Check:
    body = {"sent by": "rowq doctor", "number": uuid.uuid4().hex}
    with _own_queue(queue) as name:
        started = time.monotonic()
        sent = queue.enqueue(name, body)
        messages = queue.dequeue_fast(name, worker_name="rowq doctor")
        if [(one.message_id, one.data) for one in messages] != [(sent.message_id, body)]:
            return Check("round trip", Status.FAILED, f"sent {sent}, but got {messages!r:.300}")
        done = queue.complete(name, messages[0].claim_id)
        milliseconds = (time.monotonic() - started) * 1000
        if [(one.message_id, one.outcome) for one in done] != [(sent.message_id, "completed")]:
            return Check("round trip", Status.FAILED, f"complete returned {done!r:.300}")
    words = f"a message was sent, delivered and completed in {milliseconds:.1f} ms"
    return Check("round trip", Status.OK, words)


@contextmanager
def _own_queue(queue: Queue) -> Iterator[str]:
    """Create a queue, and drop it at the end with everything in it."""
    name = f"rowq doctor {uuid.uuid4().hex[:12]}"
    queue.create_queue(name)
    try:
        yield name
    finally:
        end = time.monotonic() + _PATIENCE_SECONDS
        while not _is_dropped(queue, name, is_last=time.monotonic() > end):
            time.sleep(0.05)


def _is_dropped(queue: Queue, name: str, *, is_last: bool) -> bool:
    """Drop the queue; return False where calls of others hold it up and another try may follow."""
    try:
        queue.drop_queue(name, force=True)
    except QueueBusy:
        if is_last:
            raise
        return False
    return True


def rights(connection: Any) -> Iterator[Check]:
    """Yield one check: which of rowq's roles the account has the rights of."""
    contract = load_contract()
    there = contract.of(engine_for_connection(connection).name)
    routines = {name: one for name, one in there.items() if not one.is_own}
    may = {name for name, one in routines.items() if may_call(connection, one)}
    lacks = {
        role: sorted(
            name for name, one in routines.items() if role in one.roles and name not in may
        )
        for role in contract.roles
    }
    has = [role for role in contract.roles if not lacks[role]]
    if not lacks["admin"]:
        yield Check("rights", Status.OK, f"may call all {len(may)} routines")
    elif has:
        missing = ", ".join(lacks["admin"])
        yield Check("rights", Status.WARNING, f"those of {', '.join(has)}; may not call {missing}")
    else:
        word = "has no role of rowq's: grant it rowq_producer, rowq_consumer or another"
        yield Check("rights", Status.FAILED, word)


def examine(url: str) -> Iterator[Check]:
    """Yield what is found, check by check; the rest is left out where it makes no sense.

    Args:
        url: the database's URL.

    Raises:
        CannotConnect: the database could not be reached.
        MissingPrivilege: a DBA cannot act as the database's owner.
    """
    known = checks_of(url)
    with session(url) as connection:
        yield _connection(connection, known)
        supported = _version(connection, known)
        yield supported
        yield from (_setting(connection, setting) for setting in known.settings)
        yield _clock(connection, known)
        installed = list(_installed(url, connection, known))
        yield from installed
        if Status.FAILED in {supported.status, installed[0].status}:
            return
        yield from rights(connection)
        if known.more is not None:
            yield from known.more(connection)
        yield from _health(connection)
        yield from round_trip(connection)


def _connection(connection: Any, known: EngineChecks) -> Check:
    started = time.monotonic()
    for _ in range(3):
        value_of(connection, known.now)
    milliseconds = (time.monotonic() - started) * 1000 / 3
    return Check("connection", Status.OK, f"a round trip takes {milliseconds:.1f} ms")


def _version(connection: Any, known: EngineChecks) -> Check:
    version = value_of(connection, known.version)
    is_supported = known.is_supported(version)
    found = Status.OK if is_supported else Status.FAILED
    return Check("server version", found, f"{version}; rowq runs on {known.supported}")


def _setting(connection: Any, setting: Setting) -> Check:
    try:
        value = value_of(connection, setting.query)
    except Exception as error:
        if not is_driver_error(error):
            raise
        return Check(setting.name, Status.UNKNOWN, f"this account may not look: {line_of(error)}")
    if setting.is_good(value):
        return Check(setting.name, Status.OK, _words(value))
    return Check(setting.name, setting.otherwise, f"{_words(value)}: {setting.advice}")


def _clock(connection: Any, known: EngineChecks) -> Check:
    """Compare the clocks: the server's counts, but run_at is a moment of the caller's."""
    before = time.time()
    server = float(value_of(connection, known.now))
    after = time.time()
    skew = server - (before + after) / 2
    uncertain = (after - before) / 2
    found = Status.OK if abs(skew) <= _SKEW_SECONDS + uncertain else Status.WARNING
    words = f"the server's is {skew:+.3f} s off ours, give or take {uncertain:.3f}"
    return Check("clock", found, words)


def _look(url: str) -> migrate.Status | str:
    """Return what is installed, or why this account may not see it.

    Raises:
        MigrationError: what is there is not ours.
    """
    try:
        return migrate.status(url)
    except MissingPrivilege as error:
        return line_of(error)


def _installed(url: str, connection: Any, known: EngineChecks) -> Iterator[Check]:
    """Yield whether rowq is there, up to date and as shipped; the first check is whether at all.

    Where it is not there nothing is called: anybody could make a routine meanwhile.
    """
    try:
        found = _look(url)
    except MigrationError as error:
        yield Check(_INSTALLED, Status.FAILED, line_of(error))
        return
    if not isinstance(found, str):
        if found.owner is None:
            yield Check(_INSTALLED, Status.FAILED, "no: run rowq migrate")
            return
        if known.runs_as_caller and not _is_known(found):
            yield Check(_INSTALLED, Status.FAILED, "not as shipped, and so nothing was called")
            yield from _as_shipped(found)
            return
    be_no_more_than_the_owner(connection, known)
    try:
        row = Queue(connection).version()
    except Exception as error:
        if not is_driver_error(error):
            raise
        if isinstance(found, str) or found.installed:
            detail = f"yes, and no more to see: {line_of(error)}"
            yield Check(_INSTALLED, Status.UNKNOWN, detail)
        else:
            yield Check(_INSTALLED, Status.FAILED, f"run rowq migrate; {line_of(error)}")
        return
    newer = f"; this client is {rowq.__version__}" if row.rowq_version != rowq.__version__ else ""
    words = f"migration {row.schema_version} of rowq {row.rowq_version}{newer}"
    yield Check(_INSTALLED, Status.WARNING if newer else Status.OK, words)
    yield from _as_shipped(found)


def _is_known(found: migrate.Status) -> bool:
    """Return whether no routine can be another than the one that was shipped."""
    strange = any(drift.problem in {"changed", "unknown"} for drift in found.drift)
    return bool(found.installed) and not found.newer and not strange


def _as_shipped(found: migrate.Status | str) -> Iterator[Check]:
    if isinstance(found, str):
        yield Check("as shipped", Status.UNKNOWN, found)
        return
    if not found.installed:
        word = "only the owner can see whether every routine is the shipped one"
        yield Check("as shipped", Status.UNKNOWN, word)
        return
    pending = ", ".join(map(str, found.pending))
    drift = ", ".join(f"{each.routine} is {each.problem}" for each in found.drift)
    unknown = ", ".join(found.newer)
    yield _unless(pending, "up to date", f"run rowq migrate; pending: {pending}")
    yield _unless(unknown, "known migrations", f"a newer rowq installed {unknown}: use that")
    yield _unless(drift, "as shipped", f"run rowq migrate, or find out who changed it: {drift}")
    yield _unless("; ".join(found.notices), "roles", "; ".join(found.notices), Status.WARNING)


def _unless(fault: str, name: str, detail: str, otherwise: Status = Status.FAILED) -> Check:
    return Check(name, otherwise, detail) if fault else Check(name, Status.OK, "yes")


def _health(connection: Any) -> Iterator[Check]:
    """Yield what rowq health finds to be wrong, or that it is all well."""
    try:
        checks = Queue(connection).health()
    except Exception as error:
        if not is_driver_error(error):
            raise
        yield Check("health", Status.UNKNOWN, f"this account may not ask: {line_of(error)}")
        return
    wrong = [check for check in checks if check.status != "ok"]
    for check in wrong:
        queue = f" of {check.queue_name}" if check.queue_name else ""
        detail = f"{check.value:g}: {check.detail}"
        yield Check(f"health: {check.check_name}{queue}", _OF_HEALTH[check.status], detail)
    if not wrong:
        yield Check("health", Status.OK, f"{len(checks)} checks are well")


def _words(value: Any) -> str:
    return "none" if value is None else str(value)
