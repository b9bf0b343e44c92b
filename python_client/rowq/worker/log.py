"""The worker's logger, rowq.worker, and how its processes log as their parent does."""

import logging
import pickle
from dataclasses import dataclass

log = logging.getLogger("rowq.worker")

_LOGGERS = ("rowq", "rowq.worker")


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What a process started anew does not have of its parent's logging.

    is_wanted: whether the parent has set anything up. Levels are those of the root logger and of
    rowq's own. formatter: of the parent's first handler that has one.
    """

    is_wanted: bool
    level: int
    levels: tuple[int, ...]
    formatter: logging.Formatter | None

    @classmethod
    def of_this_process(cls) -> "LogSettings":
        """Return those of this process."""
        root = logging.getLogger()
        formatters = [handler.formatter for handler in root.handlers if _can_go(handler.formatter)]
        return cls(
            is_wanted=bool(root.handlers),
            level=root.level,
            levels=tuple(logging.getLogger(name).level for name in _LOGGERS),
            formatter=formatters[0] if formatters else None,
        )

    def apply(self) -> None:
        """Log to standard error in the parent's format, unless a module has set up logging."""
        root = logging.getLogger()
        if not self.is_wanted or root.handlers:
            return
        handler = logging.StreamHandler()
        handler.setFormatter(self.formatter)
        root.addHandler(handler)
        root.setLevel(self.level)
        for name, level in zip(_LOGGERS, self.levels, strict=True):
            logging.getLogger(name).setLevel(level)


def _can_go(formatter: logging.Formatter | None) -> bool:
    """Whether another process can be given it."""
    try:
        pickle.dumps(formatter)
    except Exception:
        return False
    return formatter is not None
