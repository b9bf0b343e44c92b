"""The forms of the calls, each the statements of a client, and what brings them into a database."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.harness.bodies import body
from benchmarks.studies.queues.kinds import QUEUE
from benchmarks.studies.queues.statements import LEASE_SECONDS
from benchmarks.studies.queues.systems import pgmq, rowq
from rowq.migrate import migrate

BATCH = 100
"""Messages of one call that puts in many."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form.

    title: for the page. install: brings it into an empty database, given that one's URL; create:
    the statement that makes the queue, if one is needed. calls: statements by the kind of the call,
    whose one parameter is a body, many, none, or the first column that dequeue returned. pack:
    returns that parameter of enqueue_batch from the bodies. tables: those that the form writes.
    """

    name: str
    title: str
    install: Callable[[str], object]
    create: str | None
    calls: dict[str, str]
    pack: Callable[[list[str]], bytes]
    tables: tuple[str, ...]


def bodies() -> list[str]:
    """Return the bodies of one batch."""
    return [body(number).decode() for number in range(BATCH)]


def forms() -> list[Form]:
    """Return the forms in their order, without pgmq's own where the package is not installed."""
    own = ("rowq.message", "rowq.ready", "rowq.claim", "rowq.floor")
    found = [
        Form(
            "rowq",
            "rowq",
            migrate,
            rowq().statements.create.replace("$1::text", f"'{QUEUE}'"),
            {
                "enqueue": f"select message_id from rowq.enqueue('{QUEUE}', $1::text)",
                "dequeue": "select claim_id, message_id, body"
                f" from rowq.dequeue_fast('{QUEUE}', 1, 'bench', {LEASE_SECONDS})",
                "complete": f"select message_id from rowq.complete('{QUEUE}', $1::bigint)",
                "enqueue_batch": f"select message_id from rowq.enqueue_batch('{QUEUE}', $1::jsonb)",
            },
            _messages,
            own,
        ),
        Form(
            "rowq_rows",
            "rowq's rows alone",
            _install_rows,
            None,
            {
                "enqueue": "select bare.enqueue($1::text)",
                "dequeue": "select claim_id, message_id, body from bare.dequeue()",
                "complete": "select bare.complete($1::bigint)",
                "enqueue_batch": "select bare.enqueue_batch($1::jsonb)",
            },
            _messages,
            own[:3],
        ),
        Form(
            "pgmq_rows",
            "pgmq's rows alone",
            lambda url: _run(url, "pgmq_rows.sql"),
            None,
            {
                "enqueue": "select bare.send($1::jsonb)",
                "dequeue": "select msg_id, message::text from bare.read()",
                "complete": "select bare.delete($1::bigint)",
                "enqueue_batch": "select bare.send_batch($1::jsonb[])",
            },
            _array,
            ("bare.queue",),
        ),
    ]
    peer = pgmq(None)
    if peer is not None:
        calls = {
            "enqueue": f"select pgmq.send('{QUEUE}', $1::jsonb)",
            "dequeue": "select msg_id, message::text"
            f" from pgmq.read('{QUEUE}', {LEASE_SECONDS}, 1)",
            "complete": f"select pgmq.delete('{QUEUE}', $1::bigint)",
            "enqueue_batch": f"select pgmq.send_batch('{QUEUE}', $1::jsonb[])",
        }
        create = f"select pgmq.create('{QUEUE}')"
        table = (f"pgmq.q_{QUEUE}",)
        found.append(Form("pgmq", "pgmq", peer.install, create, calls, _array, table))
    return found


def _install_rows(url: str) -> None:
    migrate(url)
    _run(url, "rowq_rows.sql")


def _run(url: str, file: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(Path(__file__).with_name(file).read_bytes())


def _messages(texts: list[str]) -> bytes:
    """Return messages as rowq's client sends them."""
    return json.dumps([{"body": text, "priority": 5} for text in texts]).encode()


def _array(texts: list[str]) -> bytes:
    """Return an array of PostgreSQL."""
    return ("{" + ",".join(json.dumps(text) for text in texts) + "}").encode()
