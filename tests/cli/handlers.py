"""Handlers for `rowq work`."""

import asyncio
import os
from pathlib import Path

from rowq.messages import Message


def record(message: Message) -> None:
    """Write the message to a file named by its id and the process, in ROWQ_TEST_RECORDS."""
    folder = Path(os.environ["ROWQ_TEST_RECORDS"])
    (folder / f"{message.message_id}.{os.getpid()}").write_text(message.body or "")


async def meet_two_others(message: Message) -> None:
    """Record the message and wait until three are recorded."""
    record(message)
    while len(list(Path(os.environ["ROWQ_TEST_RECORDS"]).iterdir())) < 3:
        await asyncio.sleep(0.01)
