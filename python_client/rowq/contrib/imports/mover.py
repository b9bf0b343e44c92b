"""The move of messages from another queue to rowq, in batches."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rowq.contrib.imports.source import Item, Source
from rowq.errors import QueueNotFound
from rowq.queue import Queue
from rowq.tools.console.database import require_queue
from rowq.tools.console.errors import BadInput, CommandFailed, exit_code_of, one_line


@dataclass(slots=True)
class Moved:
    """Counts of a queue's messages.

    source      name of the other queue
    messages    waiting messages
    later       of these, delayed messages
    tried       of these, messages with earlier attempts
    left        messages that stay: leased, or waiting for others
    missing     whether the queue does not exist in rowq
    enqueued    messages new in rowq
    duplicates  messages whose dedup key was in rowq
    removed     messages deleted from the other queue
    overtaken   of `later`, messages with a group key: other messages of their groups pass them
    """

    source: str
    queue_name: str
    messages: int = 0
    later: int = 0
    tried: int = 0
    left: int = 0
    missing: bool = False
    enqueued: int = 0
    duplicates: int = 0
    removed: int = 0
    overtaken: int = 0


@dataclass(slots=True)
class Mover:
    """Moves, copies or counts messages.

    batch_size   maximum messages per batch
    remove       delete them from the other queue
    dry_run      only count them
    """

    queue: Queue
    source: Source
    batch_size: int
    remove: bool
    dry_run: bool
    _span: str = field(default="", init=False)

    def require(self, queue_names: set[str], *, create: bool) -> None:
        """Create queues, or raise QueueNotFound for a missing one."""
        for name in sorted(queue_names):
            if create:
                self.queue.create_queue(name)
            else:
                require_queue(self.queue, name, "producer")

    def move(self, name: str, queue_name: str) -> Moved:
        """Import a queue's messages; raises BadInput or CommandFailed with the progress."""
        moved = Moved(name, queue_name)
        try:
            moved.missing = not self._has(queue_name)
            moved.left = self.source.left(name)
            with self.source.reading(name):
                while self._batch(moved):
                    pass
        except BadInput as error:
            raise BadInput(f"{error}. {self._so_far(moved)}") from None
        except KeyboardInterrupt as error:
            text = f"interrupted. {self._so_far(moved)}"
            raise CommandFailed(exit_code_of(error), text) from None
        except Exception as error:
            text = f"{one_line(error)}{self._span}. {self._so_far(moved)}"
            raise CommandFailed(exit_code_of(error), text) from error
        return moved

    def _has(self, queue_name: str) -> bool:
        try:
            require_queue(self.queue, queue_name, "producer")
        except QueueNotFound:
            return False
        return True

    def _batch(self, moved: Moved) -> bool:
        """Import a batch and count it after its commit; return whether there was one."""
        new = 0
        removed = 0
        with self.source.transaction():
            items = self.source.page(
                moved.source, self.batch_size, lock=self.remove and not self.dry_run
            )
            if items and not self.dry_run:
                outcomes = self._enqueue(moved.queue_name, items)
                new = outcomes.count("enqueued")
                if self.remove:
                    removed = self.source.remove(moved.source, _safe(items, outcomes))
        moved.messages += len(items)
        moved.later += sum(item.later for item in items)
        moved.tried += sum(item.tried > 0 for item in items)
        moved.overtaken += sum(item.later and item.message.group_key is not None for item in items)
        moved.removed += removed
        if not self.dry_run:
            moved.enqueued += new
            moved.duplicates += len(items) - new
        return bool(items)

    def _enqueue(self, queue_name: str, items: Sequence[Item]) -> list[str]:
        """Enqueue messages in one call; return their outcomes."""
        ends = dict.fromkeys((items[0].label, items[-1].label))
        self._span = f" ({' to '.join(ends)})"
        done = self.queue.enqueue_batch(queue_name, [item.message for item in items])
        self._span = ""
        return [one.outcome for one in sorted(done, key=lambda one: one.position)]

    def _so_far(self, moved: Moved) -> str:
        if self.dry_run:
            return "Dry run: nothing was changed"
        if not moved.messages:
            return f"No messages of {moved.source} were imported"
        return (
            f"{moved.messages} messages of {moved.source} were imported; run the command again to"
            " continue, it adds no message twice"
        )


def _safe(items: Sequence[Item], outcomes: Sequence[str]) -> list[Item]:
    """Return the messages that are certainly in rowq.

    A duplicate by the other queue's own key may be a different message.
    """
    return [
        item
        for item, outcome in zip(items, outcomes, strict=True)
        if outcome == "enqueued" or item.message.dedup_key == item.own_key
    ]
