"""What changes is told to who looks, by one look for everybody, and only while somebody looks."""

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
    """Serve a page; yield its address, without a slash at the end, and what its requests share."""
    app = rowq.web.create_app(url, authorize=lambda _: "act", interval=interval, **options)
    with serving(app, "127.0.0.1", 0) as found:
        yield found.address.rstrip("/"), app.state.site


class Stream:
    """The events that a browser is told."""

    def __init__(self, address: str, **headers: str) -> None:
        self.told: list[str] = []
        place = urlsplit(address)
        self._connection = http.client.HTTPConnection(place.netloc, timeout=60)
        self._connection.request("GET", f"{place.path}?{place.query}", headers=headers)
        self._socket = self._connection.sock
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Go away."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.close()

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is told."""
        return not self._thread.is_alive()

    def _read(self) -> None:
        with suppress(OSError, http.client.HTTPException):
            for line in self._answer:
                name, _, value = line.decode().strip().partition(": ")
                if name == "event":
                    self.told.append(value)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the routines that were called by any queue object of the page."""
    made: list[str] = []
    before = rowq.Queue._rows

    def noted(self: rowq.Queue, routine: str, **arguments: Any) -> Any:
        made.append(routine)
        return before(self, routine, **arguments)

    monkeypatch.setattr(rowq.Queue, "_rows", noted)
    return made


def test_a_change_is_told_and_nothing_is_asked_when_nobody_looks(
    database_url: str, make_queue: MakeQueue, calls: list[str]
) -> None:
    queue = make_queue()
    with served(database_url) as (address, site):
        sampler = site.samplers["database"]
        stream = Stream(f"{address}/events")
        wait_until(lambda: "queues" in stream.told, "who comes is told everything")
        wait_until(lambda: bool(sampler.points(queue.name, 0)), "it was looked at")
        count = stream.told.count("queues")
        queue.pause_queue()
        wait_until(lambda: stream.told.count("queues") > count, "the pause is told")
        wait_until(lambda: len(sampler.points(queue.name, 0)) > 1, "it was looked at again")
        assert "list_claims" not in calls
        address_of_part = f"{address}/parts/queue?name={queue.name}"
        wait_until(lambda: "paused" in get(address_of_part)[1], "the pause is shown")
        points = json.loads(get(f"{address}/queue/points?name={queue.name}")[1])
        assert len(points) == 6
        assert points[0] == sorted(points[0])
        assert len(points[0]) >= 2
        stream.close()
        wait_until(lambda: sampler._thread is None, "the looks end", seconds=30)
        made = len(calls)
        time.sleep(0.5)
        assert len(calls) == made


def test_twenty_who_look_cost_less_than_a_query_a_second(
    database_url: str, make_queue: MakeQueue, calls: list[str]
) -> None:
    """Looks are counted, whatever their interval is: at the usual one each stands for 2 seconds."""
    queue = make_queue()
    queue.enqueue(1, delay_seconds=900)
    with served(database_url, interval=0.05) as (address, _), ExitStack() as stack:
        streams = [Stream(f"{address}/events?claims=1") for _ in range(20)]
        for stream in streams:
            stack.callback(stream.close)
        wait_until(lambda: all(stream.told for stream in streams), "all are told", seconds=30)
        before = len(calls)
        for _ in streams:
            for part in ("parts/queue", "parts/lists", "queue/points", "parts/workers"):
                assert get(f"{address}/{part}?name={queue.name}")[0] == 200
        wait_until(lambda: calls[before:].count("queue_stats") >= 30, "more looks", seconds=60)
        asked = calls[before:]
    # The last look may have begun, and the first one have been over, when these were noted.
    following = {"peek", "list_delayed"}
    assert set(asked) <= {"queue_stats", "health", "list_claims", "list_workers"} | following
    assert len(asked) - 3 < asked.count("queue_stats") * 2.0


@pytest.mark.usefixtures("made")
def test_a_stream_ends_with_the_server(database_url: str) -> None:
    with served(database_url) as (address, _):
        stream = Stream(f"{address}/events")
        wait_until(lambda: bool(stream.told), "something is told")
    wait_until(lambda: stream.has_ended, "the stream ends")


def test_mounted_a_page_is_ended_by_its_application(database_url: str, made: str) -> None:
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
            wait_until(lambda: bool(stream.told), "something is told")
        finally:
            rowq.web.end(page)
            wait_until(lambda: stream.has_ended, "the stream ends")
            assert Stream(f"{address}/events").status == 503
            server.should_exit = True
            thread.join(60)
        assert not thread.is_alive()


def test_who_comes_later_or_again_is_told_everything(
    database_url: str, make_queue: MakeQueue
) -> None:
    queue = make_queue()
    everything = {"queues", "health", "claims"}
    with served(database_url) as (address, site):
        first = Stream(f"{address}/events")
        wait_until(lambda: everything <= set(first.told), "the first one is told")
        second = Stream(f"{address}/events")
        wait_until(lambda: everything <= set(second.told), "the second one is told")
        first.close()
        wait_until(lambda: len(site.samplers["database"]._viewers) == 1, "one has left", seconds=60)
        count = second.told.count("queues")
        queue.pause_queue()
        # Only what a look has found can be told: a pause that ends before the next look is none.
        found = site.samplers["database"].sample
        wait_until(lambda: found().queue(queue.name).is_paused, "the pause is found")
        wait_until(lambda: second.told.count("queues") > count, "the pause is told")
        again = Stream(f"{address}/events")
        wait_until(lambda: everything <= set(again.told), "who comes again is told")
        counts = [stream.told.count("queues") for stream in (second, again)]
        queue.resume_queue()
        wait_until(lambda: second.told.count("queues") > counts[0], "the other one is told")
        wait_until(lambda: again.told.count("queues") > counts[1], "and who has come again")
        second.close()
        again.close()


def test_what_is_done_during_a_look_is_looked_at_again(
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


def test_a_look_that_fails_is_not_the_last_one(
    database_url: str, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_queue()
    before, failed = sampling._read, threading.Event()

    def broken(*_: Any) -> Any:
        failed.set()
        raise ZeroDivisionError

    with served(database_url) as (address, _):
        stream = Stream(f"{address}/events")
        wait_until(lambda: bool(stream.told), "something is told")
        monkeypatch.setattr(sampling, "_read", broken)
        assert failed.wait(60)
        monkeypatch.setattr(sampling, "_read", before)
        count = stream.told.count("queues")
        queue.pause_queue()
        wait_until(lambda: stream.told.count("queues") > count, "the pause is told", seconds=30)
        stream.close()


@pytest.mark.usefixtures("made")
def test_no_more_look_than_may(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_MOST_VIEWERS", 1)
    with served(database_url) as (address, _):
        stream = Stream(f"{address}/events")
        assert Stream(f"{address}/events").status == 503
        stream.close()


@pytest.mark.slow("waits for a database that is gone")
def test_a_lost_database_is_told_and_heals(database_url: str, made: str) -> None:
    with relay(database_url) as network, served(network.url) as (address, _):
        stream = Stream(f"{address}/events")

        def page() -> str:
            return get(f"{address}/parts/queues")[1]

        wait_until(lambda: made in page(), "the queue is shown")
        network.refuse(connections=True)
        network.cut()
        wait_until(lambda: "could not be looked at" in page(), "the fault is told", seconds=30)
        assert made in page()
        network.calm()
        wait_until(lambda: "could not be looked at" not in page(), "it has healed", seconds=30)
        stream.close()


def test_a_series_is_bounded_and_a_trend_is_drawn(
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


def test_metrics_and_probes_are_there(browser: Browser, made: str) -> None:
    text = browser.page("/metrics")
    assert "rowq_up 1.0" in text
    assert f'rowq_messages{{queue="{made}",state="ready"}} 0.0' in text
    assert browser.page("/live") == browser.page("/ready") == "ok\n"


def test_a_page_that_is_paused_follows_nothing(browser: Browser, made: str) -> None:
    assert 'data-events="/events"' in browser.page("/")
    paused = browser.page("/queue", name=made, paused=1)
    assert "data-events" not in paused
    assert f'/queue?name={made}">Follow changes' in paused
