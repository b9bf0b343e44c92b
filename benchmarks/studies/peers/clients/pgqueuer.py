"""Runs pgqueuer by its Queries and QueueManager over asyncpg."""

import asyncio
import json
from collections.abc import Mapping
from datetime import timedelta
from importlib.metadata import version
from typing import Any

import asyncpg
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from benchmarks.studies.peers.protocol import Producing, Talk, Tally, run_role


async def _connect(talk: Talk) -> Any:
    where = talk.config["pg"]
    return await asyncpg.connect(
        host=where["host"], port=where["port"], user=where["user"], database=where["database"]
    )


def prepare(talk: Talk) -> Mapping[str, Any]:
    """Install the tables."""

    async def run() -> None:
        connection = await _connect(talk)
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()

    asyncio.run(run())
    return {"prepared": True, "version": version("pgqueuer")}


def produce(talk: Talk) -> Mapping[str, Any]:
    """Add jobs by enqueue, with lists for several."""
    work = Producing(talk)
    after = timedelta(seconds=talk.delay) if talk.delay else None

    async def run() -> None:
        connection = await _connect(talk)
        queries = Queries(AsyncpgDriver(connection))
        talk.ready()
        for messages in work.calls():
            payloads: list[bytes | None] = [json.dumps(message).encode() for message in messages]
            size = len(payloads)
            if size == 1:
                await queries.enqueue(talk.queue, payloads[0], execute_after=after)
            else:
                await queries.enqueue([talk.queue] * size, payloads, [0] * size, [after] * size)
        await connection.close()

    asyncio.run(run())
    return work.result()


def consume(talk: Talk) -> Mapping[str, Any]:
    """Run a QueueManager."""
    tally = Tally(talk)

    async def run() -> None:
        manager = QueueManager(Queries(AsyncpgDriver(await _connect(talk))))

        @manager.entrypoint(talk.queue)
        async def handle(job: Job) -> None:
            assert job.payload is not None
            tally.handle(json.loads(job.payload))

        await asyncio.to_thread(talk.ready)
        loop = asyncio.get_running_loop()
        talk.on_stop(lambda: loop.call_soon_threadsafe(manager.shutdown.set))
        await manager.run(batch_size=talk.batch)

    asyncio.run(run())
    return tally.result()


if __name__ == "__main__":
    run_role({"prepare": prepare, "produce": produce, "consume": consume})
