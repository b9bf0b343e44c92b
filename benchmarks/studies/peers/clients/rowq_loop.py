"""Runs rowq's calls in a loop without a Worker: what a Worker adds is the difference."""

from collections.abc import Mapping
from typing import Any

import rowq
from benchmarks.studies.peers.clients.rowq import prepare, produce
from benchmarks.studies.peers.protocol import Talk, Tally, run_role, run_threads


def consume(talk: Talk) -> Mapping[str, Any]:
    """Handle messages, then complete them and dequeue the next in one call, as a Worker does."""
    tally = Tally(talk)
    messages: list[rowq.Message] = []
    with rowq.connect(talk.url) as queue:

        def turn() -> bool:
            nonlocal messages
            if messages:
                claim, ids = messages[0].claim_id, [message.message_id for message in messages]
                following = queue.complete_and_dequeue(
                    talk.queue, claim, ids, batch_size=talk.batch
                )
                messages = following.messages
            else:
                messages = queue.dequeue_fast(talk.queue, talk.batch)
            for message in messages:
                tally.handle(message.data)
            return bool(messages)

        talk.ready()
        run_threads(talk, turn)
        if messages:
            queue.complete(talk.queue, messages[0].claim_id)
    return tally.result()


if __name__ == "__main__":
    run_role({"prepare": prepare, "produce": produce, "consume": consume})
