"""Facts about the machine that affect the figures."""

import contextlib
import os
import platform
import statistics
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_SYNCS = 200
_PAGE = 8192


def host_facts(directory: Path | None) -> dict[str, Any]:
    """Return facts about the machine; directory: on the server's disk, None if it is remote."""
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_average": round(os.getloadavg()[0], 2),
        "fdatasync_us": None if directory is None else fdatasync_us(directory),
    }


def fdatasync_us(directory: Path) -> float:
    """Return the median microseconds to overwrite 8 KiB and sync it to disk."""
    lengths = []
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        file.write(bytes(_PAGE * _SYNCS))
        file.flush()
        os.fsync(file.fileno())
        for number in range(_SYNCS):
            os.pwrite(file.fileno(), os.urandom(_PAGE), number * _PAGE)
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            lengths.append(time.perf_counter() - started)
    return round(statistics.median(lengths) * 1e6, 1)


def commit_of(root: Path) -> str:
    """Return the checkout's commit, marked dirty if files differ; "" without git."""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return ""


def cpu_seconds(pid: int, *, waited: bool = False) -> float:
    """Return the seconds of CPU time of a process, user and system.

    waited: include the children that it has reaped.
    """
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
        used = fields[11:15] if waited else fields[11:13]
        return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")
    return 0.0


def exact_cpu_seconds(pid: int) -> float:
    """Return the seconds of CPU time of a process with one thread, in nanoseconds, not ticks."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[0]) / 1e9
    return cpu_seconds(pid)


def children_of(pid: int) -> Iterator[int]:
    """Yield the pids of a process's children."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            yield from map(int, task.read_text("ascii").split())


def _field(path: str, name: str) -> str:
    with contextlib.suppress(OSError):
        for line in Path(path).read_text("utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return ""


class Closing(ABC):
    """A context manager that calls `close` on exit."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Release all resources."""
