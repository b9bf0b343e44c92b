"""Change events: one sample serves all viewers, and sampling ends with the last one."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

import rowq
import rowq.web
from rowq.web import sampler as sampling
from rowq.web.databases import Database
from rowq.web.sampler import Sampler
from rowq.web.serving import serving
from tests.client.proxy import relay
from tests.engines.base import wait_until
from tests.helpers.worker_queue import MakeQueue
from tests.metrics.reading import get
from tests.web.browsing import Browser


@contextmanager
def served(url: Any, interval: float = 0.1, **options: Any) -> Iterator[tuple[str, Any]]:
    """Serve a page; yield its address without a trailing slash, and its site."""
    app = rowq.web.create_app(url, authorize=lambda _: "act", interval=interval, **options)
    with serving(app, "127.0.0.1", 0) as found:
        yield found.address.rstrip("/"), app.state.site


class Stream:
    """The events that a browser receives."""

    def __init__(self, address: str, **headers: str) -> None:
        self.received: list[str] = []
        parts = urlsplit(address)
        self._connection = http.client.HTTPConnection(parts.netloc, timeout=60)
        self._connection.request("GET", f"{parts.path}?{parts.query}", headers=headers)
        self._socket = self._connection.sock
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.close()

    @property
    def has_ended(self) -> bool:
        """Whether the stream has ended."""
        return not self._thread.is_alive()

    def _read(self) -> None:
        with suppress(OSError, http.client.HTTPException):
            for line in self._answer:
                name, _, value = line.decode().strip().partition(": ")
                if name == "event":
                    self.received.append(value)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the routines called by queue objects of the page."""
    made: list[str] = []
    before = rowq.Queue._rows

    def recorded(self: rowq.Queue, routine: str, **arguments: Any) -> Any:
        made.append(routine)
        return before(self, routine, **arguments)

    monkeypatch.setattr(rowq.Queue, "_rows", recorded)
    return made


def test_changes_are_sent_and_sampling_ends_with_viewers(
    database_url: str, make_queue: MakeQueue, calls: list[str]
) -> None:
    queue = make_queue()
    with served(database_url) as (address, site):
        sampler = site.samplers["database"]
        stream = Stream(f"{address}/events")
        wait_until(lambda: "queues" in stream.received, "a new viewer receives all regions")
        wait_until(lambda: bool(sampler.points(queue.name, 0)), "a sample was taken")
        count = stream.received.count("queues")
        queue.pause_queue()
        wait_until(lambda: stream.received.count("queues") > count, "the pause is sent")
        wait_until(lambda: len(sampler.points(queue.name, 0)) > 1, "another sample was taken")
        assert "list_claims" not in calls
        address_of_part = f"{address}/parts/queue?name={queue.name}"
        wait_until(lambda: "paused" in get(address_of_part)[1], "the pause is shown")
        points = json.loads(get(f"{address}/queue/points?name={queue.name}")[1])
        assert len(points) == 6
        assert points[0] == sorted(points[0])
        assert len(points[0]) >= 2
        stream.close()
        wait_until(lambda: sampler._thread is None, "sampling ends", seconds=30)
        made = len(calls)
        time.sleep(0.5)
        assert len(calls) == made


def test_20_viewers_cost_less_than_a_query_per_second(
    database_url: str, make_queue: MakeQueue, calls: list[str]
) -> None:
    """Count calls per sample, because the default interval is 2 seconds."""
    queue = make_queue()
    queue.enqueue(1, delay_seconds=900)
    with served(database_url, interval=0.05) as (address, _), ExitStack() as stack:
        streams = [Stream(f"{address}/events?claims=1") for _ in range(20)]
        for stream in streams:
            stack.callback(stream.close)
        wait_until(
            lambda: all(stream.received for stream in streams), "all have events", seconds=30
        )
        before = len(calls)
        for _ in streams:
            for part in ("parts/queue", "parts/lists", "queue/points", "parts/workers"):
                assert get(f"{address}/{part}?name={queue.name}")[0] == 200
        wait_until(lambda: calls[before:].count("queue_stats") >= 30, "more samples", seconds=60)
        asked = calls[before:]
    # The first and the last sample may be incomplete here.
    following = {"peek", "list_delayed"}
    assert set(asked) <= {"queue_stats", "health", "list_claims", "list_workers"} | following
    assert len(asked) - 3 < asked.count("queue_stats") * 2.0


@pytest.mark.usefixtures("made")
def test_stream_ends_with_server(database_url: str) -> None:
    with served(database_url) as (address, _):
        stream = Stream(f"{address}/events")
        wait_until(lambda: bool(stream.received), "an event arrives")
    wait_until(lambda: stream.has_ended, "the stream ends")


def test_end_closes_streams_of_mounted_page(database_url: str, made: str) -> None:
    page = rowq.web.create_app(database_url, authorize=lambda _: "act", interval=0.1)
    host = Starlette(routes=[Mount("/rowq", page)])
    config = uvicorn.Config(host, log_config=None, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/rowq"
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            assert made in get(f"{address}/")[1]
            stream = Stream(f"{address}/events")
            wait_until(lambda: bool(stream.received), "an event arrives")
        finally:
            rowq.web.end(page)
            wait_until(lambda: stream.has_ended, "the stream ends")
            assert Stream(f"{address}/events").status == 503
            server.should_exit = True
            thread.join(60)
        assert not thread.is_alive()


def test_new_viewer_receives_all_regions(database_url: str, make_queue: MakeQueue) -> None:
    queue = make_queue()
    everything = {"queues", "health", "claims"}
    with served(database_url) as (address, site):
        first = Stream(f"{address}/events")
        wait_until(lambda: everything <= set(first.received), "the first receives all regions")
        second = Stream(f"{address}/events")
        wait_until(lambda: everything <= set(second.received), "the second receives all regions")
        first.close()
        wait_until(
            lambda: len(site.samplers["database"]._viewers) == 1, "the viewer has left", seconds=60
        )
        count = second.received.count("queues")
        queue.pause_queue()
        # A pause that ends before the next sample causes no event.
        found = site.samplers["database"].sample
        wait_until(lambda: found().queue(queue.name).is_paused, "the pause is found")
        wait_until(lambda: second.received.count("queues") > count, "the pause is sent")
        again = Stream(f"{address}/events")
        wait_until(lambda: everything <= set(again.received), "a new viewer receives all regions")
        counts = [stream.received.count("queues") for stream in (second, again)]
        queue.resume_queue()
        wait_until(lambda: second.received.count("queues") > counts[0], "the resume is sent")
        wait_until(lambda: again.received.count("queues") > counts[1], "and to the new viewer")
        second.close()
        again.close()


def test_action_during_sample_causes_another_sample(
    database_url: str, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_queue()
    sampler = Sampler(Database("x", database_url), 3600)
    before = sampling._read

    def slow(*arguments: Any) -> Any:
        found = before(*arguments)
        queue.pause_queue()
        sampler.expire()
        return found

    monkeypatch.setattr(sampling, "_read", slow)
    assert not sampler.sample().queue(queue.name).is_paused  # type: ignore[union-attr]
    monkeypatch.setattr(sampling, "_read", before)
    assert sampler.sample().queue(queue.name).is_paused  # type: ignore[union-attr]


def test_sampling_continues_after_error(
    database_url: str, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_queue()
    before, failed = sampling._read, threading.Event()

    def broken(*_: Any) -> Any:
        failed.set()
        raise ZeroDivisionError

    with served(database_url) as (address, _):
        stream = Stream(f"{address}/events")
        wait_until(lambda: bool(stream.received), "an event arrives")
        monkeypatch.setattr(sampling, "_read", broken)
        assert failed.wait(60)
        monkeypatch.setattr(sampling, "_read", before)
        count = stream.received.count("queues")
        queue.pause_queue()
        wait_until(lambda: stream.received.count("queues") > count, "the pause is sent", seconds=30)
        stream.close()


@pytest.mark.usefixtures("made")
def test_number_of_viewers_is_limited(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_MOST_VIEWERS", 1)
    with served(database_url) as (address, _):
        stream = Stream(f"{address}/events")
        assert Stream(f"{address}/events").status == 503
        stream.close()


@pytest.mark.slow("waits for a database that is gone")
def test_lost_database_is_shown_and_recovers(database_url: str, made: str) -> None:
    with relay(database_url) as network, served(network.url) as (address, _):
        stream = Stream(f"{address}/events")

        def page() -> str:
            return get(f"{address}/parts/queues")[1]

        wait_until(lambda: made in page(), "the queue is shown")
        network.refuse(connections=True)
        network.cut()
        wait_until(lambda: "Cannot read the database" in page(), "the error is shown", seconds=30)
        assert made in page()
        network.calm()
        wait_until(lambda: "Cannot read the database" not in page(), "it recovers", seconds=30)
        stream.close()


def test_series_is_bounded(
    database_url: str, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "_LONGEST_SERIES", 3)
    queue = make_queue()
    sampler = Sampler(Database("x", database_url), 3600)
    for number in range(5):
        queue.enqueue(number)
        sampler.expire()
        sampler.sample()
    assert sampler.trend(60)[queue.name] == [3, 4, 5]
    points = sampler.points(queue.name, 0)
    assert len(points) == 3
    assert sampler.points(queue.name, points[1][0]) == points[2:]
    sampler.sample()
    assert len(sampler.points(queue.name, 0)) == 3


def test_metrics_and_probes_respond(browser: Browser, made: str) -> None:
    text = browser.page("/metrics")
    assert "rowq_up 1.0" in text
    assert f'rowq_messages{{queue="{made}",state="ready"}} 0.0' in text
    assert browser.page("/live") == browser.page("/ready") == "ok\n"


def test_paused_page_has_no_event_stream(browser: Browser, made: str) -> None:
    assert 'data-events="/events"' in browser.page("/")
    paused = browser.page("/queue", name=made, paused=1)
    assert "data-events" not in paused
    assert f'/queue?name={made}">Resume updates' in paused
