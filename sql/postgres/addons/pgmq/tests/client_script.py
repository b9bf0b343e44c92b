"""A script of every call of pgmq's Python client, with comparable results.

Ids become positions in the order of sending, times become seconds, errors their SQLSTATE.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
from pgmq import PGMQueue
from pgmq.messages import Message, QueueMetrics, QueueRecord
from psycopg_pool import ConnectionPool

PATIENCE = 60
NO_ID = 1_000_000
Step = tuple[str, Callable[[], Any]]


class Recorded:
    """The client on one database, with the names of the called methods."""

    def __init__(self, url: str, called: set[str]) -> None:
        """Open one connection."""
        self._pool = ConnectionPool(url, min_size=1, max_size=1, open=True)
        self._client = PGMQueue(pool=self._pool, init_extension=False)
        self._called = called
        self._places: dict[int, int] = {}

    def __getattr__(self, name: str) -> Any:
        """Return a client method and record its name."""
        self._called.add(name)
        return getattr(self._client, name)

    def close(self) -> None:
        """Close the connection."""
        self._pool.close()

    def sql(self, text: str, *values: object) -> Any:
        """Call a function that the client has no method for."""
        with self._pool.connection() as connection:
            return connection.execute(text, values).fetchall()

    def begin(self, queue_name: str) -> None:
        """Create a queue, and count positions from its first message."""
        self._places = {}
        self.create_queue(queue_name)

    def sent(self, *ids: int) -> list[int]:
        """Assign positions to ids and return them."""
        return [self._places.setdefault(number, len(self._places) + 1) for number in ids]

    def id_at(self, place: int) -> int:
        """Return the id at a position."""
        return next(number for number, found in self._places.items() if found == place)

    def plain(self, given: Any) -> Any:
        """Return a call's comparable result."""
        match given:
            case Message():
                read = given.last_read_at
                hidden = given.vt - (read or datetime.now(UTC))
                return {
                    "place": self._places[given.msg_id],
                    "read_ct": given.read_ct,
                    "message": given.message,
                    "headers": given.headers,
                    "was read": read is not None,
                    "hidden seconds": max(round(hidden.total_seconds(), -1), 0),
                }
            case QueueRecord():
                return (
                    str(given),
                    given.is_partitioned,
                    given.is_unlogged,
                    given.created_at is not None,
                )
            case QueueMetrics():
                return {
                    "queue": given.queue_name,
                    "length": given.queue_length,
                    "visible": given.queue_visible_length,
                    "newest": given.newest_msg_age_sec is not None,
                    "oldest": given.oldest_msg_age_sec is not None,
                    "total": given.total_messages,
                }
            case list():
                return [self.plain(one) for one in given]
        return given


def run(url: str, called: set[str], keep_archive: Callable[[], None]) -> dict[str, Any]:
    """Run the script on a database; return each step's result.

    Args:
        url: the database.
        called: receives the names of the called methods.
        keep_archive: called after creating the queue "archived", to give it an archive.
    """
    client = Recorded(url, called)
    results: dict[str, Any] = {}
    try:
        for name, step in _steps(client, keep_archive):
            try:
                results[name] = client.plain(step())
            except psycopg.Error as error:
                results[name] = f"error {error.sqlstate}"
    finally:
        client.close()
    return results


def _steps(c: Recorded, keep_archive: Callable[[], None]) -> Iterator[Step]:
    yield from _sending(c)
    yield from _reading(c)
    yield from _hiding(c)
    yield from _finishing(c)
    yield from _archiving(c, keep_archive)
    yield from _queues(c)
    yield from _not_there(c)


def _sending(c: Recorded) -> Iterator[Step]:
    past = datetime.now(UTC) - timedelta(hours=1)
    headers = {"trace": "a", "n": None}
    yield "create", lambda: c.begin("sent")
    yield "create again", lambda: c.create_queue("sent")
    yield "send", lambda: c.sent(c.send("sent", {"n": 1, "text": 'ä"\\'}))
    yield "send, delay", lambda: c.sent(c.send("sent", {"n": 2}, delay=0))
    yield "send, time", lambda: c.sent(c.send("sent", {"n": 3}, delay=past))
    yield "send, headers", lambda: c.sent(c.send("sent", {"n": 4}, headers=headers))
    yield "send, headers, delay", lambda: c.sent(c.send("sent", {"n": 5}, headers, delay=0))
    yield "send, headers, time", lambda: c.sent(c.send("sent", {"n": 6}, headers, delay=past))
    batch: list[Any] = [{"n": 7}, [1.50, "x"], "text", None]
    many: list[Any] = [headers, {}, headers, headers]
    with_headers: dict[str, Any] = {"headers": many}
    ways: dict[str, dict[str, Any]] = {
        "": {},
        ", delay": {"delay": 0},
        ", time": {"delay": past},
        ", headers": with_headers,
        ", headers, delay": with_headers | {"delay": 0},
        ", headers, time": with_headers | {"delay": past},
    }
    for name, more in ways.items():
        yield f"send_batch{name}", partial(_send_batch, c, batch, more)
    yield "send, no queue", lambda: c.send("missing", {})
    yield (
        "send_batch, bad headers",
        lambda: c.sql(
            "select pgmq.send_batch('sent', array['1', '2']::jsonb[], array['{}']::jsonb[])"
        ),
    )
    yield "send_batch, empty", lambda: c.sql("select pgmq.send_batch('sent', '{}'::jsonb[])")
    yield "metrics", lambda: c.metrics("sent")
    yield "what was sent", lambda: c.read_batch("sent", vt=600, batch_size=100)
    yield "metrics, read", lambda: c.metrics("sent")
    yield "send, later", lambda: c.sent(c.send("sent", {"n": 8}, delay=3600))
    yield "read delayed", lambda: c.read("sent")
    yield "metrics, later", lambda: c.metrics("sent")


def _send_batch(c: Recorded, batch: list[Any], more: dict[str, Any]) -> list[int]:
    return c.sent(*c.send_batch("sent", batch, **more))


def _reading(c: Recorded) -> Iterator[Step]:
    yield "create to be read", lambda: c.begin("read")
    yield "read nothing", lambda: c.read("read", vt=30)
    yield "poll nothing", lambda: c.read_with_poll("read", max_poll_seconds=0)
    yield "pop nothing", lambda: c.pop("read")
    yield "send three", lambda: c.sent(*c.send_batch("read", [{"n": n} for n in range(3)]))
    yield "read", lambda: c.read("read", vt=600)
    yield "poll", lambda: c.read_with_poll("read", vt=600, qty=2, max_poll_seconds=PATIENCE)
    yield "read none left", lambda: c.read("read", vt=600, qty=5)
    yield "send three more", lambda: c.sent(*c.send_batch("read", [{"n": n} for n in range(3)]))
    yield "read with vt 1", lambda: c.read("read", vt=1, qty=1)
    yield "pop", lambda: c.pop("read", qty=2)
    yield (
        "read after vt",
        lambda: c.read_with_poll("read", vt=600, qty=2, max_poll_seconds=PATIENCE),
    )
    yield "send for read", lambda: c.sent(c.send("read", {"n": 9}))
    shown = "select read_ct, message from pgmq.read('read', 0, 5)"
    yield "read without vt", lambda: c.sql(shown)
    yield "read without vt again", lambda: c.sql(shown)
    long = "select round(extract(epoch from vt - now()) / 86400) from pgmq.read('read', 864000, 1)"
    yield "read for ten days", lambda: c.sql(long)
    yield "read with vt of ten days", lambda: c.read("read")


def _hiding(c: Recorded) -> Iterator[Step]:
    soon = datetime.now(UTC) + timedelta(seconds=1000)
    yield "create to be hidden", lambda: c.begin("hidden")
    yield "send four", lambda: c.sent(*c.send_batch("hidden", [{"n": n} for n in range(4)]))
    yield "read one", lambda: c.read("hidden", vt=100)
    yield "set_vt, longer", lambda: c.set_vt("hidden", c.id_at(1), 500)
    yield "set_vt, time", lambda: c.set_vt("hidden", c.id_at(1), soon)
    yield "set_vt, now", lambda: c.set_vt("hidden", c.id_at(1), 0)
    yield "metrics, shown again", lambda: c.metrics("hidden")
    yield (
        "read all",
        lambda: sorted(
            (message.message["n"], message.read_ct) for message in c.read("hidden", vt=100, qty=10)
        ),
    )
    yield "set_vt, batch", lambda: c.set_vt("hidden", [c.id_at(2), c.id_at(3)], 300)
    yield "set_vt, batch, time", lambda: c.set_vt("hidden", [c.id_at(2), c.id_at(3)], soon)
    yield "set_vt, shorter", lambda: c.set_vt("hidden", c.id_at(4), 50)
    yield "set_vt of none", lambda: c.set_vt("hidden", NO_ID, 50)
    yield "set_vt again", lambda: c.set_vt("hidden", c.id_at(4), 90)
    yield "delete what is hidden", lambda: c.delete("hidden", c.id_at(4))


def _finishing(c: Recorded) -> Iterator[Step]:
    yield "create to be finished", lambda: c.begin("finished")
    yield "send ten", lambda: c.sent(*c.send_batch("finished", [{"n": n} for n in range(10)]))
    yield "read four", lambda: c.read("finished", vt=600, qty=4)
    yield "delete", lambda: c.delete("finished", c.id_at(1))
    yield "delete again", lambda: c.delete("finished", c.id_at(1))
    yield "delete unread", lambda: c.delete("finished", c.id_at(10))
    yield (
        "delete, batch",
        lambda: c.sent(*sorted(c.delete_batch("finished", [*map(c.id_at, (1, 2, 9)), NO_ID]))),
    )
    yield "read the rest", lambda: [message.message for message in c.read("finished", 600, 10)]
    yield "send one", lambda: c.sent(c.send("finished", {"n": 10}))
    yield "purge", lambda: c.purge("finished")
    yield "purge again", lambda: c.purge("finished")
    yield "metrics, purged", lambda: c.metrics("finished")
    yield "send one more", lambda: c.sent(c.send("finished", {"n": 11}))
    yield "archive without", lambda: c.archive("finished", c.id_at(12))


def _archiving(c: Recorded, keep_archive: Callable[[], None]) -> Iterator[Step]:
    yield "create an archive", lambda: c.begin("archived")
    keep_archive()
    yield "send five", lambda: c.sent(*c.send_batch("archived", [{"n": n} for n in range(5)]))
    yield "archive", lambda: c.archive("archived", c.id_at(1))
    yield "archive again", lambda: c.archive("archived", c.id_at(1))
    yield (
        "archive, batch",
        lambda: c.sent(*sorted(c.archive_batch("archived", [*map(c.id_at, (1, 2, 3)), NO_ID]))),
    )
    yield "metrics, archived", lambda: c.metrics("archived")


def _queues(c: Recorded) -> Iterator[Step]:
    yield "create unlogged", lambda: c.create_queue("unlogged", unlogged=True)
    yield "list", lambda: sorted(c.list_queues(), key=str)
    yield "metrics of all", lambda: sorted(one.queue_name for one in c.metrics_all())
    yield "metrics, no queue", lambda: c.metrics("missing")
    yield "drop", lambda: c.drop_queue("sent")
    yield "drop again", lambda: c.drop_queue("sent")
    yield "read after drop", lambda: c.read("sent")
    yield "list after drop", lambda: sorted(map(str, c.list_queues()))


def _not_there(c: Recorded) -> Iterator[Step]:
    yield "validate_queue_name", lambda: c.validate_queue_name("read")
    yield "create_partitioned", lambda: c.create_partitioned_queue("parted")
    yield "convert_archive_partitioned", lambda: c.convert_archive_partitioned("read")
    yield "detach_archive", lambda: c.detach_archive("read")
    yield "create_fifo_index", lambda: c.create_fifo_index("read")
    yield "create_fifo_indexes_all", lambda: c.create_fifo_indexes_all()
    yield "read, condition", lambda: c.read("read", conditional={"n": 77})
    yield "read_grouped", lambda: c.read_grouped("archived")
    yield "read_grouped_with_poll", lambda: c.read_grouped_with_poll("archived", max_poll_seconds=0)
    yield "read_grouped_rr", lambda: c.read_grouped_rr("archived")
    yield (
        "read_grouped_rr_with_poll",
        lambda: c.read_grouped_rr_with_poll("archived", max_poll_seconds=0),
    )
    yield "enable_notify", lambda: c.enable_notify("read")
    yield "update_notify", lambda: c.update_notify("read", 100)
    yield "list_notify_throttles", lambda: len(c.list_notify_throttles())
    yield "disable_notify", lambda: c.disable_notify("read")
    yield "validate_routing_key", lambda: c.validate_routing_key("a.b")
    yield "validate_topic_pattern", lambda: c.validate_topic_pattern("a.*")
    yield "bind_topic", lambda: c.bind_topic("a.*", "read")
    yield "list_topic_bindings", lambda: len(c.list_topic_bindings())
    yield "list_topic_bindings of one", lambda: len(c.list_topic_bindings("read"))
    yield "test_routing", lambda: len(c.test_routing("a.b"))
    yield "send_topic", lambda: c.send_topic("a.b", {})
    yield "send_batch_topic", lambda: len(c.send_batch_topic("a.b", [{}]))
    yield "unbind_topic", lambda: c.unbind_topic("a.*", "read")
