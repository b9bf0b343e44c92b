"""pg-boss, by its own client in a process of Node.js: schedules, and jobs with an output."""

import json
import subprocess
from contextlib import suppress
from pathlib import Path
from select import select
from typing import Any

from benchmarks.harness.closing import Closing
from benchmarks.studies.features.courses import PUT, TAKE, Course, Steps
from benchmarks.studies.features.features import SCHEDULES
from benchmarks.studies.features.meter import TRACK
from benchmarks.studies.peers.node import NODE_PEERS
from benchmarks.studies.queues.kinds import QUEUE

(PEER,) = (peer for peer in NODE_PEERS if peer.name == "pg-boss")
_PROGRAM = Path(__file__).resolve().parents[2] / "peers_node" / "pg_boss_features.mjs"

_PATIENCE = 60.0


class Program(Closing):
    """The process, which obeys one order after the other; the .mjs has the list."""

    def __init__(self, url: str) -> None:
        command = [PEER.program[0], str(_PROGRAM)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        self._write({"url": url, "queue": QUEUE, "schedules": SCHEDULES})

    def close(self) -> None:
        """Tell the process to end, and wait for it."""
        with suppress(BrokenPipeError):
            self._write({"stop": True})
        self._process.communicate()

    def order(self, do: str, **more: Any) -> Any:
        """Give an order, wait until it is obeyed, and return what was answered.

        Raises RuntimeError if the process ends instead, or obeys for too long.
        """
        self._write({"do": do} | more)
        assert self._process.stdout is not None
        ready, _, _ = select([self._process.stdout], [], [], _PATIENCE)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self._process.kill()
            raise RuntimeError(f"pg-boss did not obey the order {do}")
        return json.loads(line)["done"]

    def _write(self, line: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()


def install(url: str) -> None:
    """Bring pg-boss into an empty database, with its queue and its schedules."""
    with Program(url) as program:
        program.order("prepare")


class PgBossCourse(Course):
    """Jobs of pg-boss, in a session of a process of its own.

    ticks: whether its schedules make them. output: whether they are completed with one.
    """

    leftovers = (
        "delete from pgboss.job where name = '__pgboss__send-it'",
        "update pgboss.version set cron_on = null",
    )

    def __init__(self, name: str, url: str, *, ticks: bool = False, output: bool = False) -> None:
        self._program = Program(url)
        self._ticks = ticks
        self._output = output
        backend = self._program.order("start", scheduler=ticks)
        super().__init__(name, SCHEDULES, "pgboss", url, backend)

    def close(self) -> None:
        """Close both sessions."""
        self._program.close()
        super().close()

    def steps(self) -> Steps:
        """Return the steps; each moves as many jobs as there are schedules."""
        return [(PUT, lambda _: self._put()), (TAKE, lambda _: self._take())]

    def track(self, *, on: bool) -> None:
        """Have the statements of the session counted, or not."""
        self._program.order("sql", text=TRACK[on])

    def turn(self, messages: int) -> dict[str, dict[str, float]]:  # noqa: ARG002
        """Pass one job of each schedule: its worker rests a second before it looks for ticks."""
        return super().turn(SCHEDULES)

    def warm_up(self) -> None:
        """Let jobs pass that no schedule makes."""
        self._program.order("insert", jobs=SCHEDULES)
        self._take()

    def _put(self) -> None:
        with self.meter.running():
            if self._ticks:
                self._program.order("tick")
            else:
                self._program.order("insert", jobs=SCHEDULES)

    def _take(self) -> None:
        with self.meter.running():
            taken = self._program.order("take", jobs=SCHEDULES, output=self._output)
        if taken != SCHEDULES:
            raise RuntimeError(f"pg-boss had {taken} jobs instead of {SCHEDULES}")
