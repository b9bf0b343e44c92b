"""The checks of rowq doctor and their order.

The check of privileges calls each routine with arguments that it must refuse. The round trip sends
a message through a temporary queue.
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
    checks_of,
    limit_rights,
    line_of,
    session,
    value_of,
)
from rowq.tools.migrate import MigrationError, MissingPrivilege
from rowq.tools.rights import may_call

_CALLED = ("create_queue", "enqueue", "dequeue_fast", "complete", "drop_queue")
_DROP_SECONDS = 30.0

_INSTALLED = "installed"
_SKEW_SECONDS = 1.0
_OF_HEALTH = {"critical": Status.FAILED, "warning": Status.WARNING}


def round_trip(connection: Any) -> Iterator[Check]:
    """Yield one check: whether a message is delivered unchanged, and how fast."""
    routines = load_contract().of(engine_for_connection(connection).name)
    lacks = [name for name in _CALLED if not may_call(connection, routines[name])]
    if lacks:
        yield Check("round trip", Status.UNKNOWN, f"this account cannot call {', '.join(lacks)}")
        return
    try:
        yield _sent(Queue(connection))
    except Exception as error:
        if not (isinstance(error, RowqError) or is_driver_error(error)):
            raise
        yield Check("round trip", Status.FAILED, f"{type(error).__name__}: {line_of(error)}")


def _sent(queue: Queue) -> Check:
    body = {"sent by": "rowq doctor", "number": uuid.uuid4().hex}
    with _temporary_queue(queue) as name:
        started = time.monotonic()
        sent = queue.enqueue(name, body)
        messages = queue.dequeue_fast(name, worker_name="rowq doctor")
        if [(one.message_id, one.data) for one in messages] != [(sent.message_id, body)]:
            return Check("round trip", Status.FAILED, f"sent {sent}, got {messages!r:.300}")
        done = queue.complete(name, messages[0].claim_id)
        milliseconds = (time.monotonic() - started) * 1000
        if [(one.message_id, one.outcome) for one in done] != [(sent.message_id, "completed")]:
            return Check("round trip", Status.FAILED, f"complete returned {done!r:.300}")
    text = f"a message was sent, delivered and completed in {milliseconds:.1f} ms"
    return Check("round trip", Status.OK, text)


@contextmanager
def _temporary_queue(queue: Queue) -> Iterator[str]:
    """Create a queue for a block, then drop it with its messages."""
    name = f"rowq doctor {uuid.uuid4().hex[:12]}"
    queue.create_queue(name)
    try:
        yield name
    finally:
        end = time.monotonic() + _DROP_SECONDS
        while not _is_dropped(queue, name, is_last=time.monotonic() > end):
            time.sleep(0.05)


def _is_dropped(queue: Queue, name: str, *, is_last: bool) -> bool:
    """Drop the queue; return False if other sessions use it, and this is not the last try."""
    try:
        queue.drop_queue(name, force=True)
    except QueueBusy:
        if is_last:
            raise
        return False
    return True


def rights(connection: Any) -> Iterator[Check]:
    """Yield one check: which roles' privileges the account has."""
    contract = load_contract()
    all_routines = contract.of(engine_for_connection(connection).name)
    routines = {name: one for name, one in all_routines.items() if not one.is_own}
    may = {name for name, one in routines.items() if may_call(connection, one)}
    lacks = {
        role: sorted(
            name for name, one in routines.items() if role in one.roles and name not in may
        )
        for role in contract.roles
    }
    has = [role for role in contract.roles if not lacks[role]]
    if not lacks["admin"]:
        yield Check("rights", Status.OK, f"can call all {len(may)} routines")
    elif has:
        missing = ", ".join(lacks["admin"])
        yield Check("rights", Status.WARNING, f"has {', '.join(has)}; cannot call {missing}")
    else:
        text = "no role of rowq is granted; grant rowq_producer, rowq_consumer or another"
        yield Check("rights", Status.FAILED, text)


def examine(url: str) -> Iterator[Check]:
    """Yield the checks one by one; omit those that a failed check makes meaningless.

    Args:
        url: the database's URL.

    Raises:
        CannotConnect: the database could not be reached.
        MissingPrivilege: a DBA cannot act as the database's owner.
    """
    checks = checks_of(url)
    with session(url) as connection:
        yield _connection(connection, checks)
        supported = _version(connection, checks)
        yield supported
        yield from (_setting(connection, setting) for setting in checks.settings)
        yield _clock(connection, checks)
        installed = list(_installed(url, connection, checks))
        yield from installed
        if Status.FAILED in {supported.status, installed[0].status}:
            return
        yield from rights(connection)
        if checks.more is not None:
            yield from checks.more(connection)
        yield from _health(connection)
        yield from round_trip(connection)


def _connection(connection: Any, checks: EngineChecks) -> Check:
    started = time.monotonic()
    for _ in range(3):
        value_of(connection, checks.now)
    milliseconds = (time.monotonic() - started) * 1000 / 3
    return Check("connection", Status.OK, f"a round trip takes {milliseconds:.1f} ms")


def _version(connection: Any, checks: EngineChecks) -> Check:
    version = value_of(connection, checks.version)
    status = Status.OK if checks.is_supported(version) else Status.FAILED
    return Check("server version", status, f"{version}; rowq runs on {checks.supported}")


def _setting(connection: Any, setting: Setting) -> Check:
    try:
        value = value_of(connection, setting.query)
    except Exception as error:
        if not is_driver_error(error):
            raise
        return Check(setting.name, Status.UNKNOWN, f"cannot read it: {line_of(error)}")
    if setting.is_good(value):
        return Check(setting.name, Status.OK, _text_of(value))
    return Check(setting.name, setting.otherwise, f"{_text_of(value)}: {setting.advice}")


def _clock(connection: Any, checks: EngineChecks) -> Check:
    """Compare the clocks: run_at is a time of the caller, and the server's clock decides."""
    before = time.time()
    server = float(value_of(connection, checks.now))
    after = time.time()
    skew = server - (before + after) / 2
    uncertain = (after - before) / 2
    status = Status.OK if abs(skew) <= _SKEW_SECONDS + uncertain else Status.WARNING
    text = f"the server's clock is {skew:+.3f} s off this machine's (±{uncertain:.3f})"
    return Check("clock", status, text)


def _status(url: str) -> migrate.Status | str:
    """Return what is installed, or why this account cannot read it; raise MigrationError."""
    try:
        return migrate.status(url)
    except MissingPrivilege as error:
        return line_of(error)


def _installed(url: str, connection: Any, checks: EngineChecks) -> Iterator[Check]:
    """Yield first whether rowq is installed, then whether it is current and unmodified.

    If it is not installed, no routine is called: any account could have created it.
    """
    try:
        found = _status(url)
    except MigrationError as error:
        yield Check(_INSTALLED, Status.FAILED, line_of(error))
        return
    if not isinstance(found, str):
        if found.owner is None:
            yield Check(_INSTALLED, Status.FAILED, "no; run rowq migrate")
            return
        if checks.runs_as_caller and not _is_unmodified(found):
            yield Check(_INSTALLED, Status.FAILED, "modified, so no routine was called")
            yield from _unmodified(found)
            return
    limit_rights(connection, checks)
    try:
        row = Queue(connection).version()
    except Exception as error:
        if not is_driver_error(error):
            raise
        if isinstance(found, str) or found.installed:
            yield Check(_INSTALLED, Status.UNKNOWN, f"yes; no details: {line_of(error)}")
        else:
            yield Check(_INSTALLED, Status.FAILED, f"run rowq migrate; {line_of(error)}")
        return
    newer = f"; this client is {rowq.__version__}" if row.rowq_version != rowq.__version__ else ""
    text = f"migration {row.schema_version} of rowq {row.rowq_version}{newer}"
    yield Check(_INSTALLED, Status.WARNING if newer else Status.OK, text)
    yield from _unmodified(found)


def _is_unmodified(found: migrate.Status) -> bool:
    """Return whether every routine is certainly the released one."""
    is_modified = any(drift.problem in {"changed", "unknown"} for drift in found.drift)
    return bool(found.installed) and not found.newer and not is_modified


def _unmodified(found: migrate.Status | str) -> Iterator[Check]:
    if isinstance(found, str):
        yield Check("as shipped", Status.UNKNOWN, found)
        return
    if not found.installed:
        yield Check("as shipped", Status.UNKNOWN, "only the owner can read the routines")
        return
    pending = ", ".join(map(str, found.pending))
    drift = ", ".join(f"{each.routine} is {each.problem}" for each in found.drift)
    unknown = ", ".join(found.newer)
    yield _unless(pending, "up to date", f"run rowq migrate; pending: {pending}")
    yield _unless(
        unknown, "known migrations", f"upgrade this rowq; a newer one installed {unknown}"
    )
    yield _unless(drift, "as shipped", f"run rowq migrate, or find out who changed it: {drift}")
    yield _unless("; ".join(found.notices), "roles", "; ".join(found.notices), Status.WARNING)


def _unless(problem: str, name: str, detail: str, otherwise: Status = Status.FAILED) -> Check:
    return Check(name, otherwise, detail) if problem else Check(name, Status.OK, "yes")


def _health(connection: Any) -> Iterator[Check]:
    """Yield the health checks that are not ok, or one check if all are."""
    try:
        checks = Queue(connection).health()
    except Exception as error:
        if not is_driver_error(error):
            raise
        yield Check("health", Status.UNKNOWN, f"this account cannot call health: {line_of(error)}")
        return
    wrong = [check for check in checks if check.status != "ok"]
    for check in wrong:
        queue = f" of {check.queue_name}" if check.queue_name else ""
        detail = f"{check.value:g}: {check.detail}"
        yield Check(f"health: {check.check_name}{queue}", _OF_HEALTH[check.status], detail)
    if not wrong:
        yield Check("health", Status.OK, f"all {len(checks)} checks are ok")


def _text_of(value: Any) -> str:
    return "none" if value is None else str(value)
