"""Seed 001: messages with a predecessor, taken by a join, or blocked until it is done."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness.results import Results
from benchmarks.harness.targets import Target
from benchmarks.studies.seeds.base import Form, Seed, rowq_form, sql_forms
from benchmarks.studies.seeds.seed_001.run import chains

FOLDER = Path(__file__).parent
_NAME = "chains"
_ORIGINS = {
    "chain_blocked": "messages with a predecessor wait in a table of their own",
    "chain_join": "one table, a join to the predecessor at dequeue, passing over locked rows",
    "chain_join_waiting": "the same join, waiting for locked rows",
}

WORDS = """
A message names its predecessor and is to be taken only when that is done. The document finds such
messages by a join at dequeue, and keeps the consumer's transaction open until the message is
deleted. Six consumers, a millisecond of work for each message, and two producers; a hundred chains
of 200 messages stand in the table, one chain behind the other, and in the second scenario the first
2,000 messages are one chain that cannot go on before tomorrow. `chain_blocked` keeps what has a
predecessor in a table of its own, and the transaction that finishes the predecessor moves it.
"Order broken" counts messages, in the histories of the consumers, that were handed out before the
handler of their predecessor was done; deadlocks are the server's count.

A dequeue by the join walks over every blocked message in front of the first that is free. The table
of blocked messages takes more statements for a message, and its dequeue walks over none of them.
MariaDB's `for update` cannot be kept to one table of a join: passing over locked rows, it takes a
predecessor in another consumer's hands for gone, and breaks the order.

rowq's message names its predecessor in `enqueue`, or in the batch. Its consumers hold no
transaction while they work: a claim is committed, and `complete` frees the message that waited, so
that each message costs two commits where the other forms have one. A blocked message is not in the
way of a dequeue, as with `chain_blocked`.
"""


def _forms(engine: str) -> list[Form]:
    return [rowq_form(engine), *sql_forms(_ORIGINS, FOLDER, engine)]


def _targets(_engine: str, _results: Results) -> Iterator[Target]:
    """Return no target: the ratios of rates and reads say it."""
    return iter(())


SEED = Seed(
    name="seed_001",
    title="Seed 001: chains of predecessors",
    words=WORDS.strip(),
    folder=FOLDER,
    forms=_forms,
    kinds={_NAME: chains},
    columns={
        _NAME: {
            "messages_per_second": "messages/s",
            "enqueued_per_second": "enqueued/s",
            "reads_per_message": "pages read/message",
            "deadlocks": "deadlocks",
            "lock_waits": "lock waits",
            "lock_wait_seconds": "seconds waited",
            "broken_order": "order broken",
            "double_runs": "run twice",
        }
    },
    targets=_targets,
)
