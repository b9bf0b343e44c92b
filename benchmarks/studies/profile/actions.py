"""The calls that are looked at, each a prepared statement of one session."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from psycopg.pq.abc import PGresult

from benchmarks.harness.bodies import body
from benchmarks.studies.queues.kinds import QUEUE
from benchmarks.studies.queues.statements import LEASE_SECONDS
from benchmarks.studies.queues.systems import System, bare, rowq

Parameters = list[bytes]


@dataclass(frozen=True, slots=True)
class Action:
    """One call.

    name: enqueue, dequeue or complete. sql: the statement. first: whether it starts with an empty
    queue. parameters: of its next call, from the number of the call and, for complete, from what
    the dequeue of that number returned. copy: whether the statement is a COPY in, whose data the
    one parameter is.
    """

    name: str
    sql: str
    parameters: Callable[[int, PGresult | None], Parameters]
    copy: bool = False


@dataclass(frozen=True, slots=True)
class Course:
    """The actions of one system at one batch size, in their order; calls: of each of them."""

    title: str
    system: System
    batch: int
    calls: int
    actions: Sequence[Action]

    @property
    def messages(self) -> int:
        """The number of messages that pass."""
        return self.batch * self.calls


def courses(messages: int, singles: int) -> list[Course]:
    """Return rowq and its floors: in batches of 50, and one by one."""
    batch, calls = 50, messages // 50
    return [
        Course("rowq", rowq(), batch, calls, _rowq(batch)),
        Course("bare", bare(), batch, calls, _bare(batch)),
        Course("bare, COPY in", bare(), batch, calls, [_copy(batch), *_bare(batch)[1:]]),
        Course("rowq", rowq(), 1, singles, _rowq(1)),
        Course("bare", bare(), 1, singles, _bare(1)),
    ]


def _rowq(batch: int) -> list[Action]:
    if batch == 1:
        enqueue = Action(
            "enqueue",
            f"select message_id from rowq.enqueue('{QUEUE}', $1::text)",
            lambda call, _: [body(call)],
        )
    else:
        enqueue = Action(
            "enqueue",
            f"select message_id from rowq.enqueue_batch('{QUEUE}', $1::jsonb)",
            lambda call, _: [_messages(call, batch)],
        )
    dequeue = Action(
        "dequeue",
        "select message_id, body, claim_id"
        f" from rowq.dequeue_fast('{QUEUE}', {batch}, 'bench', {LEASE_SECONDS})",
        lambda *_: [],
    )
    complete = Action(
        "complete",
        f"select message_id, outcome from rowq.complete('{QUEUE}', $1::bigint)",
        lambda _, taken: [_claim(taken)],
    )
    return [enqueue, dequeue, complete]


def _bare(batch: int) -> list[Action]:
    enqueue = Action(
        "enqueue",
        "insert into bare.message (body) select u.body from unnest($1::text[]) u (body)",
        lambda call, _: [_array(_bodies(call, batch))],
    )
    if batch == 1:
        insert = "insert into bare.message (body) values ($1::text)"
        enqueue = Action("enqueue", insert, lambda call, _: [body(call)])
    statement = bare().statements.dequeue.replace("$1::text", f"'{QUEUE}'")
    dequeue = Action("dequeue", statement.replace("$2::integer", str(batch)), lambda *_: [])
    return [enqueue, dequeue]


def _copy(batch: int) -> Action:
    return Action(
        "enqueue",
        "copy bare.message (body) from stdin",
        lambda call, _: [b"".join(text + b"\n" for text in _bodies(call, batch))],
        copy=True,
    )


def _bodies(call: int, batch: int) -> list[bytes]:
    return [body(call * batch + number) for number in range(batch)]


def _messages(call: int, batch: int) -> bytes:
    """Return messages as rowq's client sends them: each body is a JSON string."""
    messages = [{"body": text.decode(), "priority": 5} for text in _bodies(call, batch)]
    return json.dumps(messages).encode()


def _array(texts: Sequence[bytes]) -> bytes:
    quoted = (b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"' for text in texts)
    return b"{" + b",".join(quoted) + b"}"


def _claim(taken: PGresult | None) -> bytes:
    assert taken is not None
    return taken.get_value(0, 2) or b""
