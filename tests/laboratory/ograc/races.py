"""Two sessions of an oGRAC at once: who waits for a producer that has named a message, and who not.

Rows are locked there by oGRAC's own rules. What is shown is that the calls which must not wait pass
over a row that is locked, and that nobody is forgotten who came to wait meanwhile.
"""

import threading
import time
from collections.abc import Callable

from tests.engines.base import wait_until
from tests.laboratory.ograc.calls import Calls, UnexpectedError
from tests.laboratory.ograc.client import Client
from tests.laboratory.ograc.ties import NEW, PAST, end, nothing_waits, send, settle, take

HELD_SECONDS = 8
"""So long a producer keeps its transaction open."""
PROMPT_SECONDS = 3
"""A call that takes longer, the start of the client program included, has waited."""
WAIT_SECONDS = 2
"""A call that takes less has not waited for a producer that was open for a moment before."""


class _Producer:
    """A session that has named messages and whose transaction stays open for a while."""

    def __init__(self, client: Client, calls: Calls, statements: str, *, commits: bool) -> None:
        calls.change("delete from rowq_seen where name = 'named'")
        self._failure: Exception | None = None
        last = "commit" if commits else "rollback"
        script = (
            f"declare\n    v_id number;\nbegin\n{statements}    rowq_note('named');\n"
            f"    dbe_std.sleep({HELD_SECONDS});\nend;\n/\n{last};\n"
        )

        def run() -> None:
            try:
                client.rows(script)
            except Exception as error:
                self._failure = error

        self._thread = threading.Thread(target=run)
        self._thread.start()
        wait_until(
            lambda: calls.count("rowq_seen where name = 'named'") == 1, "it is open", seconds=20
        )

    def is_open(self) -> bool:
        """Whether its transaction has not ended."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Wait for its end."""
        self._thread.join(60)
        if self._failure:
            raise self._failure


def _prompt(producer: _Producer, call: Callable[[], object], what: str) -> None:
    """See that a call does not wait for the producer."""
    began_at = time.monotonic()
    call()
    if time.monotonic() - began_at > PROMPT_SECONDS or not producer.is_open():
        raise UnexpectedError(f"{what} has waited for a producer")


def _named(message: str, body: str, more: str = "") -> str:
    """Return the statement that enqueues a message which waits for another."""
    return (
        f"    v_id := rowq.put(p_queue_name => 'p', p_body => '{body}',"
        f" p_predecessor_ids => '[{message}]'{more});\n"
    )


def race(client: Client, calls: Calls) -> None:
    """Let sessions name and end the same messages at once. Raises UnexpectedError."""
    for commits in (True, False):
        _completion(client, calls, commits=commits)
        _archive(client, calls, commits=commits)
    _reap(client, calls)
    _second_producer(client, calls)


def _completion(client: Client, calls: Calls, *, commits: bool) -> None:
    calls.want("create_queue", {"outcome": "created"}, queue_name="'p'")
    named, beside = send(calls, "p", "named"), send(calls, "p", "beside")
    rows = take(calls, "p", "named", "beside")
    producer = _Producer(client, calls, _named(named, "waits"), commits=commits)
    _prompt(producer, lambda: end(calls, "p", rows[1]), "the end of another message")
    began_at = time.monotonic()
    end(calls, "p", rows[0])
    if time.monotonic() - began_at < WAIT_SECONDS:
        raise UnexpectedError("complete has not waited for who has named its message")
    producer.wait()
    for row in take(calls, "p", *(["waits"] if commits else [])):
        end(calls, "p", row)
    if beside == named:
        raise UnexpectedError("an id was given out twice")
    nothing_waits(calls, "p")


def _archive(client: Client, calls: Calls, *, commits: bool) -> None:
    calls.want("create_queue", {"outcome": "created"}, queue_name="'p'", archive_days="1")
    named = send(calls, "p", "named")
    send(calls, "p", "beside")
    rows = take(calls, "p", "named", "beside")
    producer = _Producer(client, calls, _named(named, "waits"), commits=commits)
    _prompt(producer, lambda: end(calls, "p", rows[0]), "complete with an archive")
    _prompt(producer, lambda: end(calls, "p", rows[1]), "complete with an archive")
    _prompt(
        producer,
        lambda: calls.want("archive", {"archived": "1"}, queue_name="'p'"),
        "the archive",
    )
    producer.wait()
    calls.want("archive", {"archived": "1"}, queue_name="'p'")
    for row in take(calls, "p", *(["waits"] if commits else [])):
        end(calls, "p", row)
    settle(calls, "p")
    nothing_waits(calls, "p")


def _reap(client: Client, calls: Calls) -> None:
    calls.want("create_queue", {"outcome": "created"}, queue_name="'p'", max_attempts="1")
    named = send(calls, "p", "named")
    take(calls, "p", "named")
    calls.change(f"update rowq_claim set lease_until = {PAST}")
    statement = _named(named, "waits", ", p_on_predecessor_dead => 'continue'")
    producer = _Producer(client, calls, statement, commits=True)
    _prompt(
        producer,
        lambda: calls.want("maintain", {"died": "1"}, queue_name="'p'"),
        "the reaper",
    )
    producer.wait()
    settle(calls, "p")
    end(calls, "p", take(calls, "p", "waits")[0])
    calls.want("cancel", {"outcome": "cancelled"}, queue_name="'p'", message_ids=f"'[{named}]'")
    nothing_waits(calls, "p")


def _second_producer(client: Client, calls: Calls) -> None:
    calls.want("create_queue", {"outcome": "created"}, queue_name="'p'")
    named = send(calls, "p", "named")
    producer = _Producer(client, calls, _named(named, "a"), commits=True)
    _prompt(
        producer,
        lambda: calls.want(
            "enqueue", NEW, queue_name="'p'", body="'b'", predecessor_ids=f"'[{named}]'"
        ),
        "a second producer",
    )
    _prompt(producer, lambda: settle(calls, "p"), "maintain")
    if calls.count("rowq_recheck where message_id is not null") != 1:
        raise UnexpectedError("the second producer has left no note")
    producer.wait()
    settle(calls, "p")
    end(calls, "p", take(calls, "p", "named")[0])
    for row in take(calls, "p", "a", "b"):
        end(calls, "p", row)
    nothing_waits(calls, "p")
