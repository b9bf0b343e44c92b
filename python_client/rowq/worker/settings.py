"""What a worker is told when it is made."""

import os
import socket
from dataclasses import dataclass, field
from typing import Literal

from rowq.errors import InvalidArgument
from rowq.worker.handlers import Handler


def _default_name() -> str:
    return f"{socket.gethostname()[:150]}:{os.getpid()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The arguments of Worker; worker.py describes them."""

    url: str = field(repr=False)
    queue_name: str
    handler: Handler | str
    per: Literal["message", "batch"]
    batch_size: int
    lease_seconds: int | None
    threads: int
    processes: int
    transactional: bool
    drain: bool
    worker_name: str | None
    idle_min_seconds: float
    idle_max_seconds: float
    listen: bool
    maintain_seconds: float

    def __post_init__(self) -> None:
        """Refuse what cannot work; raises InvalidArgument."""
        rules = {
            "per must be 'message' or 'batch'": self.per in {"message", "batch"},
            "batch_size must be between 1 and 1000": 1 <= self.batch_size <= 1000,
            "threads must be 1 or more": self.threads >= 1,
            "processes must be 0 or more": self.processes >= 0,
            "idle_min_seconds must be above 0": self.idle_min_seconds > 0,
            "idle_max_seconds must be at least idle_min_seconds": (
                self.idle_max_seconds >= self.idle_min_seconds
            ),
            "maintain_seconds must be 0 or more": self.maintain_seconds >= 0,
        }
        for rule, holds in rules.items():
            if not holds:
                raise InvalidArgument(rule)

    def name_of_thread(self, number: int) -> str:
        """Return the worker_name that thread `number` (from 1) dequeues with."""
        name = self.worker_name or _default_name()
        return name if self.threads == 1 else f"{name}/{number}"
