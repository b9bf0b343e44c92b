"""Handlers that `rowq work` is pointed at."""

import os
from pathlib import Path

from rowq.messages import Message


def note(message: Message) -> None:
    """Write the message and the process that handled it to the directory ROWQ_TEST_NOTES."""
    notes = Path(os.environ["ROWQ_TEST_NOTES"])
    (notes / f"{message.message_id}.{os.getpid()}").write_text(message.body or "")
