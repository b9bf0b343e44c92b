"""Runs procrastinate by its App with the connector PsycopgConnector, asynchronously."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any

from procrastinate import App, PsycopgConnector
from procrastinate.tasks import Task

from benchmarks.studies.peers.protocol import Producing, Talk, Tally, run_role


def _app(talk: Talk, tally: Tally | None) -> tuple[App, Task[Any, Any, Any]]:
    app = App(connector=PsycopgConnector(conninfo=talk.url))

    @app.task(name="handle", queue=talk.queue)
    async def handle(**body: Any) -> None:
        assert tally is not None
        tally.handle(body)

    return app, handle


def prepare(talk: Talk) -> Mapping[str, Any]:
    """Apply the schema."""

    async def run() -> None:
        app, _ = _app(talk, None)
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    asyncio.run(run())
    return {"prepared": True, "version": version("procrastinate")}


def produce(talk: Talk) -> Mapping[str, Any]:
    """Add jobs by defer_async or batch_defer_async; jobs of a group share a lock."""
    work = Producing(talk)

    async def run() -> None:
        app, task = _app(talk, None)
        async with app.open_async():
            talk.ready()
            for messages in work.calls():
                due = datetime.now(UTC) + timedelta(seconds=talk.delay)
                when: Any = {"schedule_at": due} if talk.delay else {}
                if talk.keys:
                    await app.job_manager.batch_defer_jobs_async(
                        [
                            task.configure(lock=body["k"], **when).make_new_job(**body)
                            for body in messages
                        ]
                    )
                elif len(messages) == 1:
                    await task.configure(**when).defer_async(**messages[0])
                else:
                    await task.configure(**when).batch_defer_async(*messages)

    asyncio.run(run())
    return work.result()


def consume(talk: Talk) -> Mapping[str, Any]:
    """Run a worker; the number of workers is its concurrency."""
    tally = Tally(talk)

    async def run() -> None:
        app, _ = _app(talk, tally)
        async with app.open_async():
            await asyncio.to_thread(talk.ready)
            work = asyncio.create_task(
                app.run_worker_async(
                    queues=[talk.queue], concurrency=talk.workers, install_signal_handlers=False
                )
            )
            stop = asyncio.create_task(asyncio.to_thread(talk.stopping.wait))
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            work.cancel()
            await asyncio.wait({work})

    asyncio.run(run())
    return tally.result()


if __name__ == "__main__":
    run_role({"prepare": prepare, "produce": produce, "consume": consume})
