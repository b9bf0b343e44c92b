"""Enqueues what intake reads, batch by batch, so that a fault leaves no batch half in.

Every batch is one call: all of it is in, or nothing. A fault ends the load and never takes back the
batches before; the error says how many messages are in and from which line to go on.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from rowq.cli.errors import BadInput, CommandFailed, exit_code_of, one_line
from rowq.cli.intake import BadLine, Body
from rowq.errors import ConnectionLost
from rowq.messages import NewMessage
from rowq.queue import Queue

_BATCH_CHARACTERS = 8 * 1024 * 1024


@dataclass(slots=True)
class Load:
    """One file on its way into a queue.

    source       the file's name, for errors
    options      keyword arguments of every NewMessage
    batch_size   most messages per call
    on_batch     called after each batch with the number of messages in so far
    """

    queue: Queue
    queue_name: str
    source: str
    options: dict[str, Any]
    batch_size: int
    on_batch: Callable[[int], None]
    count: int = field(default=0, init=False)
    _next_line: int | None = field(default=None, init=False)

    def run(self, bodies: Iterator[Body]) -> int:
        """Enqueue all bodies and return their number; raises BadInput or CommandFailed."""
        try:
            for batch in in_batches(bodies, self.batch_size):
                self._next_line = self._next_line or batch[0].first_line
                self._send(batch)
                self._next_line = batch[-1].last_line + 1
                self.count += len(batch)
                self.on_batch(self.count)
        except BadLine as bad:
            raise BadInput(f"{self.source}, line {bad.line}: {bad}. {self._so_far()}") from None
        except KeyboardInterrupt as interrupt:
            code = exit_code_of(interrupt)
            raise CommandFailed(code, f"interrupted. {self._so_far()}") from None
        return self.count

    def _send(self, batch: list[Body]) -> None:
        messages = [NewMessage(text=body.text, **self.options) for body in batch]
        try:
            self.queue.enqueue_batch(self.queue_name, messages)
        except (ConnectionLost, KeyboardInterrupt) as error:
            lines = f"lines {batch[0].first_line} to {batch[-1].last_line} of {self.source}"
            known = f"{self.count} messages before them are in; whether {lines} are is not known"
            raise CommandFailed(
                exit_code_of(error), f"{one_line(error)}. {known}: look with rowq stats"
            ) from error
        except Exception as error:
            lines = f"lines {batch[0].first_line} to {batch[-1].last_line} of {self.source}"
            raise CommandFailed(
                exit_code_of(error), f"{one_line(error)} ({lines}). {self._so_far()}"
            ) from error

    def _so_far(self) -> str:
        if not self.count:
            return "Nothing is in."
        return (
            f"{self.count} messages are in, nothing from line {self._next_line} on: continue with"
            f" --from-line {self._next_line}"
        )


def in_batches(bodies: Iterator[Body], batch_size: int) -> Iterator[list[Body]]:
    """Yield lists of up to `batch_size` bodies, shorter when they are big."""
    batch: list[Body] = []
    characters = 0
    for body in bodies:
        batch.append(body)
        characters += len(body.text)
        if len(batch) >= batch_size or characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
