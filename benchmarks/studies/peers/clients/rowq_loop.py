"""Runs rowq's calls in a loop without a Worker: what a Worker adds is the difference."""

from collections.abc import Mapping
from typing import Any

import rowq
from benchmarks.studies.peers.clients.rowq import prepare, produce
from benchmarks.studies.peers.protocol import Talk, Tally, run_role, run_threads


def consume(talk: Talk) -> Mapping[str, Any]:
    """Complete and dequeue in one call; each message is handled in between."""
    tally = Tally(talk)
    with rowq.connect(talk.url) as queue:
        claim = [0]

        def turn() -> bool:
            if claim[0]:
                messages = queue.complete_and_dequeue(
                    talk.queue, claim[0], batch_size=talk.batch
                ).messages
            else:
                messages = queue.dequeue_fast(talk.queue, talk.batch)
            claim[0] = messages[0].claim_id if messages else 0
            for message in messages:
                tally.handle(message.data)
            return bool(messages)

        talk.ready()
        run_threads(talk, turn)
        if claim[0]:
            queue.complete(talk.queue, claim[0])
    return tally.result()


if __name__ == "__main__":
    run_role({"prepare": prepare, "produce": produce, "consume": consume})
