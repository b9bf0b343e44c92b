"""The handler behind `rowq work --exec`: one run of a command per message."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

from rowq.messages import Message
from rowq.worker import Fail, Retry

_COMPLETED = 0
_RETRY_LATER = 75  # EX_TEMPFAIL of sysexits.h
_ERROR_BYTES = 2000


@dataclass(frozen=True, slots=True)
class Command:
    """Runs a program with a message's body on standard input and its facts in the environment.

    Exit status 0 completes the message, 75 retries it later, anything else declares it dead, with
    the end of what the program wrote to standard error as the reason. A program that cannot be
    started at all is no fault of the message: it is retried.
    """

    queue_name: str
    arguments: tuple[str, ...]

    @classmethod
    def parse(cls, queue_name: str, line: str) -> "Command":
        """Split `line` as a shell would; no shell runs it. Raises ValueError if nothing can run."""
        arguments = shlex.split(line)
        if not arguments:
            raise ValueError("the command is empty")
        if shutil.which(arguments[0]) is None:
            raise ValueError(f"there is no program {arguments[0]}")
        return cls(queue_name, tuple(arguments))

    def __call__(self, message: Message) -> None:
        """Run the program; raises Retry or Fail unless it ends with 0."""
        with tempfile.TemporaryFile() as errors:
            # A session of its own: Ctrl-C stops the worker, which lets the program finish.
            done = subprocess.run(
                self.arguments,
                input=_body(message),
                stderr=errors,
                env=os.environ | _facts(self.queue_name, message),
                start_new_session=True,
                check=False,
            )
            reason = _pass_on(errors) or _ending(done.returncode)
        if done.returncode == _RETRY_LATER:
            raise Retry(error=reason)
        if done.returncode != _COMPLETED:
            raise Fail(reason)


def _body(message: Message) -> bytes:
    if message.body_binary is not None:
        return message.body_binary
    return (message.body or "").encode()


def _facts(queue_name: str, message: Message) -> Mapping[str, str]:
    facts = {
        "ROWQ_QUEUE": queue_name,
        "ROWQ_MESSAGE_ID": str(message.message_id),
        "ROWQ_CLAIM_ID": str(message.claim_id),
        "ROWQ_ATTEMPT": str(message.attempt),
        "ROWQ_MESSAGE_TYPE": message.message_type or "",
        "ROWQ_HEADERS": json.dumps(message.headers or {}),
        "ROWQ_ENQUEUED_AT": message.enqueued_at.isoformat(),
        "ROWQ_LAST_ERROR": message.last_error or "",
    }
    return {name: value.replace("\0", "") for name, value in facts.items()}


def _pass_on(errors: BinaryIO) -> str:
    """Write what the program said to our own standard error, and return the end of it."""
    errors.seek(0)
    shutil.copyfileobj(errors, sys.stderr.buffer)
    sys.stderr.flush()
    errors.seek(max(0, errors.tell() - _ERROR_BYTES))
    return errors.read().decode(errors="replace").strip()


def _ending(status: int) -> str:
    return f"killed by signal {-status}" if status < 0 else f"exit status {status}"
