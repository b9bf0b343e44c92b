"""The peers with clients in Python or SQL, including rowq and the bare table."""

import shutil
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.studies.peers.node import NODE_PEERS
from benchmarks.studies.peers.peer import AbsentError, Peer

_CLIENTS = "benchmarks.studies.peers.clients"
_PGQ_CONTROL = Path("/usr/share/postgresql/15/extension/pgq.control")
_ONE_JOB = "its worker fetches one job at a time"


def _program(name: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"{_CLIENTS}.{name}")


def _of_package(name: str) -> Callable[[], str]:
    def find() -> str:
        try:
            return version(name)
        except PackageNotFoundError as error:
            raise AbsentError(f"the package {name} is not installed: extra bench-peers") from error

    return find


def _find_pgq() -> str:
    if not _PGQ_CONTROL.exists() or shutil.which("pgqd") is None:
        raise AbsentError("Debian's packages postgresql-15-pgq3 and pgqd are not installed")
    for line in _PGQ_CONTROL.read_text("utf-8").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "default_version":
            return value.strip(" '")
    raise AbsentError(f"{_PGQ_CONTROL} names no version")


PYTHON_PEERS = [
    Peer(
        name="rowq",
        origin="this checkout",
        find=_of_package("rowq"),
        program=_program("rowq"),
        settings="Worker with a thread for each worker; all other settings are defaults",
    ),
    Peer(
        name="rowq_poll",
        origin="this checkout",
        find=_of_package("rowq"),
        program=_program("rowq_poll"),
        settings="the same with listen=False",
        cannot={"drain": "the same as rowq, which listens only while idle"},
        own=True,
    ),
    Peer(
        name="rowq_loop",
        origin="this checkout",
        find=_of_package("rowq"),
        program=_program("rowq_loop"),
        settings="a loop of Queue.complete_and_dequeue instead of a Worker",
        only=("workers_1",),
        own=True,
    ),
    Peer(
        name="bare",
        origin="psycopg; insert or COPY in, `delete ... returning` out: no queue",
        find=_of_package("psycopg"),
        program=_program("bare"),
        settings="a worker polls an empty table every 10 ms",
        cannot={"delay": "a bare table has no due time", "group": "a bare table has no groups"},
        floor=True,
    ),
    Peer(
        name="pgmq",
        origin="PyPI's pgmq: class PGMQueue and the SQL of its package",
        find=_of_package("pgmq"),
        program=_program("pgmq"),
        settings="read_with_poll with its default step of 100 ms, vt 600 s, delete_batch; for"
        " groups read_grouped_with_poll",
    ),
    Peer(
        name="pgq",
        origin="Debian's postgresql-15-pgq3 and pgqd",
        find=_find_pgq,
        program=_program("pgq"),
        settings="SQL functions; a tick every 0.1 s; a consumer without a batch polls again"
        " after 50 ms",
        cannot={
            "batch": "a batch is the events between two ticks",
            "workers": "each consumer gets every event: one worker for a queue",
            "delay": "an event has no due time",
            "group": "a consumer gets events in their order, one consumer for a queue",
        },
        has_maintenance=True,
    ),
    Peer(
        name="procrastinate",
        origin="PyPI's procrastinate",
        find=_of_package("procrastinate"),
        program=_program("procrastinate"),
        settings="App with PsycopgConnector, run_worker_async, workers as concurrency; done jobs"
        " are kept; for groups a lock for each job",
        cannot={"batch": _ONE_JOB},
    ),
    Peer(
        name="pgqueuer",
        origin="PyPI's pgqueuer with asyncpg",
        find=_of_package("pgqueuer"),
        program=_program("pgqueuer"),
        settings="QueueManager.run, batch as batch_size; a process handles all fetched jobs"
        " at once, for any number of workers",
        cannot={"group": "it has no order by a key"},
    ),
]


PEERS: list[Peer] = [*PYTHON_PEERS, *NODE_PEERS]
