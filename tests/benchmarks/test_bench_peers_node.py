"""The programs of the Node.js peers keep the protocol and hand over every message once."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.engines.postgres.lab import SETTINGS, Lab, open_lab
from benchmarks.studies.peers import node
from benchmarks.studies.peers.node import NODE_PEERS
from benchmarks.studies.peers.peer import AbsentError, Peer
from benchmarks.studies.peers.process import Program, run_program
from tests.benchmarks.runs import BENCHMARKS

PATIENCE = 30
BATCHES = [1, 10]
BULKS = [1, 50]
MESSAGES = 120


@dataclass(frozen=True, slots=True)
class Nothing:
    """A database without anything in it; the peer prepares it by itself."""

    name: str = "nothing"

    def install(self, url: str) -> None:
        """Leave it as it is."""


@pytest.fixture(scope="module")
def lab(home: Path) -> Iterator[Lab]:
    """Return a private server."""
    with open_lab(None, home, SETTINGS) as lab:
        lab.prepare(Nothing())
        yield lab


@pytest.fixture(params=NODE_PEERS, ids=lambda peer: peer.name)
def peer(request: pytest.FixtureRequest) -> Peer:
    """Return each peer that is installed."""
    found: Peer = request.param
    try:
        found.find()
    except AbsentError as error:
        pytest.skip(f"{error}; to run it: see benchmarks/README.md")
    return found


@pytest.fixture
def config(lab: Lab, peer: Peer) -> Iterator[dict[str, Any]]:
    """Return the configuration for a fresh database in which the peer is prepared."""
    with lab.database(Nothing()) as url:
        config = {
            "url": url,
            "queue": "bench",
            "messages": MESSAGES,
            "rate": 0,
            "bulk": 50,
            "first": 0,
            "delay_seconds": 0,
            "bodies": [[200, 3], [2000, 1]],
            "seconds": 20,
            "workers": 3,
            "batch": 10,
            "worker_number": 0,
        }
        prepared = run_program(peer, "prepare", config)
        assert prepared == {"prepared": True, "version": peer.find()}
        yield config


def produce(peer: Peer, config: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a producer."""
    with Program(peer, "produce", config) as program:
        program.wait_ready()
        program.go()
        return program.finish()


def wait_for(consumers: list[Program], messages: int) -> None:
    """Wait until the consumers have said that they handled so many."""
    end = time.monotonic() + PATIENCE
    while sum(consumer.handled for consumer in consumers) < messages:
        assert time.monotonic() < end, [consumer.handled for consumer in consumers]
        time.sleep(0.02)


@pytest.mark.parametrize(("batch", "bulk"), list(zip(BATCHES, BULKS, strict=True)))
def test_every_message_is_handled_once_by_one_of_two_processes(
    peer: Peer, config: dict[str, Any], batch: int, bulk: int
) -> None:
    produced = produce(peer, config | {"bulk": bulk})
    assert produced["messages"] == MESSAGES
    assert sum(produced["call_us"].values()) == -(-MESSAGES // bulk)
    with ExitStack() as stack:
        consumers = [
            stack.enter_context(
                Program(peer, "consume", config | {"batch": batch, "worker_number": number})
            )
            for number in range(2)
        ]
        for consumer in consumers:
            consumer.wait_ready()
            consumer.go()
        wait_for(consumers, MESSAGES)
        for consumer in consumers:
            consumer.stop()
        results = [consumer.finish() for consumer in consumers]
    assert sum(result["messages"] for result in results) == MESSAGES
    assert sum(result["sum"] for result in results) == MESSAGES * (MESSAGES - 1) // 2
    assert sum(sum(result["latency_us"].values()) for result in results) == MESSAGES


def test_a_waiting_worker_gets_messages_as_they_come_and_leaves_none_behind(
    peer: Peer, config: dict[str, Any]
) -> None:
    with Program(peer, "consume", config) as consumer:
        consumer.wait_ready()
        consumer.go()
        produced = produce(peer, config | {"bulk": 1, "rate": 100})
        wait_for([consumer], MESSAGES)
        consumer.stop()
        result = consumer.finish()
    assert result["sum"] == MESSAGES * (MESSAGES - 1) // 2
    assert produced["ended"] - produced["began"] >= (MESSAGES - 1) / 100
    assert produced["began"] <= result["began"] <= result["ended"]
    with Program(peer, "consume", config) as other:
        other.wait_ready()
        other.go()
        produce(peer, config | {"first": MESSAGES, "messages": 1})
        wait_for([other], 1)
        other.stop()
        assert other.finish()["sum"] == MESSAGES


def test_a_producer_stops_when_it_is_told_to(peer: Peer, config: dict[str, Any]) -> None:
    with Program(peer, "produce", config | {"rate": 10, "bulk": 1}) as program:
        program.wait_ready()
        program.go()
        program.stop()
        assert program.finish()["messages"] < MESSAGES


def test_a_message_with_a_delay_is_not_handled_before_it(
    peer: Peer, config: dict[str, Any]
) -> None:
    produce(peer, config | {"delay_seconds": 86400})
    with Program(peer, "consume", config) as consumer:
        consumer.wait_ready()
        consumer.go()
        produce(peer, config | {"first": 7, "messages": 1})
        wait_for([consumer], 1)
        consumer.stop()
        assert consumer.finish()["sum"] == 7


def test_without_its_packages_a_peer_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(node, "FOLDER", tmp_path)
    for peer in NODE_PEERS:
        with pytest.raises(AbsentError, match=r"npm.*studies\.peers\.node"):
            peer.find()


def test_the_packages_are_pinned_and_no_lock_is_kept() -> None:
    folder = BENCHMARKS / "peers_node"
    wanted = json.loads((folder / "package.json").read_text("utf-8"))
    pinned = wanted["dependencies"] | wanted["optionalDependencies"]
    assert all(version.replace(".", "").isdigit() for version in pinned.values())
    assert [path.name for path in folder.iterdir() if path.name.endswith("lock.json")] == []
