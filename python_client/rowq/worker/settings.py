"""The settings of a worker, checked."""

import math
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import index
from typing import Any, Literal

from rowq.errors import InvalidArgument
from rowq.worker.handlers import Handler, check_handler


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
        """Refuse what cannot work, by the contract's ranges; raises InvalidArgument."""
        if not isinstance(self.handler, str):
            check_handler(self.handler)
        for rule, holds in self._rules().items():
            if not holds:
                raise InvalidArgument(rule)

    def _rules(self) -> Mapping[str, bool]:
        lease_seconds = 1 if self.lease_seconds is None else self.lease_seconds
        pause = self.idle_min_seconds if _is_number(self.idle_min_seconds, 0) else 0
        return {
            "per must be 'message' or 'batch'": self.per in {"message", "batch"},
            "queue_name must be 1 to 100 characters": _is_text(self.queue_name, 100, least=1),
            "batch_size must be a whole number, 1 to 1000": _is_whole(self.batch_size, 1, 1000),
            "lease_seconds must be a whole number, 1 to 86400": _is_whole(lease_seconds, 1, 86400),
            "threads must be a whole number, 1 or more": _is_whole(self.threads, 1),
            "processes must be a whole number, 0 or more": _is_whole(self.processes, 0),
            "idle_min_seconds must be above 0": pause > 0,
            "idle_max_seconds must be at least idle_min_seconds": (
                _is_number(self.idle_max_seconds, pause)
            ),
            "maintain_seconds must be 0 or more": _is_number(self.maintain_seconds, 0),
            "worker_name must be up to 200 characters, the numbers of process and thread among"
            " them": self.worker_name is None or _is_text(self._longest_name(), 200),
        }

    def _longest_name(self) -> Any:
        """Return what the last thread of the last process will be called."""
        if not (self.worker_name and isinstance(self.worker_name, str)):
            return self.worker_name
        process = f"-{self.processes}" if self.processes else ""
        thread = f"/{self.threads}" if self.threads != 1 else ""
        return f"{self.worker_name}{process}{thread}"

    def name_of_thread(self, number: int) -> str:
        """Return the worker_name that thread `number` (from 1) dequeues with."""
        name = self.worker_name or _default_name()
        return name if self.threads == 1 else f"{name}/{number}"


def _is_whole(value: Any, least: int, most: float = math.inf) -> bool:
    try:
        return not isinstance(value, bool) and least <= index(value) <= most
    except TypeError:
        return False


def _is_number(value: Any, least: float) -> bool:
    """Whether it is a number of at least so much; infinity is one, and NaN is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= least


def _is_text(value: Any, most: int, *, least: int = 0) -> bool:
    return isinstance(value, str) and least <= len(value) <= most
