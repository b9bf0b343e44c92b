"""Runs rowq by its own Queue and Worker."""

from collections.abc import Mapping
from typing import Any

import rowq
from benchmarks.studies.peers.protocol import Producing, Talk, Tally, run_role
from rowq.tools.migrate import migrate


def prepare(talk: Talk) -> Mapping[str, Any]:
    """Run the migrations and create the queue with its defaults."""
    migrate(talk.url)
    with rowq.connect(talk.url) as queue:
        queue.create_queue(talk.queue)
    return {"prepared": True, "version": rowq.__version__}


def produce(talk: Talk) -> Mapping[str, Any]:
    """Add messages by enqueue or enqueue_batch."""
    work = Producing(talk)
    delay = talk.delay or None
    with rowq.connect(talk.url) as queue:
        talk.ready()
        for messages in work.calls():
            if len(messages) == 1:
                queue.enqueue(
                    talk.queue, messages[0], delay_seconds=delay, group_key=messages[0].get("k")
                )
            else:
                queue.enqueue_batch(
                    talk.queue,
                    [
                        rowq.NewMessage(data=data, delay_seconds=delay, group_key=data.get("k"))
                        for data in messages
                    ],
                )
    return work.result()


def consume(talk: Talk, *, listen: bool | None = None) -> Mapping[str, Any]:
    """Run a Worker with a thread for each worker."""
    tally = Tally(talk)

    def handle(message: rowq.Message) -> None:
        tally.handle(message.data)

    worker = rowq.Worker(
        talk.url,
        talk.queue,
        handle,
        batch_size=talk.batch,
        threads=talk.workers,
        listen=listen,
    )
    talk.ready()
    talk.on_stop(worker.stop)
    worker.run()
    return tally.result()


if __name__ == "__main__":
    run_role({"prepare": prepare, "produce": produce, "consume": consume})
