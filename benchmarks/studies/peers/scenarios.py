"""The scenarios of this set, read from scenarios_peers.toml, whose head says what fields mean."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios_peers.toml"
SIZES = ("full", "middle", "quick")


@dataclass(frozen=True, slots=True)
class PeerScenario:
    """One scenario."""

    name: str
    kind: str
    title: str
    rounds: int
    processes: int
    workers: int
    batch: int
    seconds: float
    bodies: list[list[int]]
    needs: list[str] = field(default_factory=list)
    messages: int = 0
    target: int = 0
    rate: float = 0
    bulk: int = 1
    fill_seconds: float = 0
    delayed: int = 0
    holder: str = ""

    def shares(self) -> list[int]:
        """Return the workers of each process; a process without any is left out."""
        each, more = divmod(self.workers, self.processes)
        shares = [each + (number < more) for number in range(self.processes)]
        return [share for share in shares if share]


def load_peer_scenarios(size: str = "full", path: Path = SCENARIOS) -> list[PeerScenario]:
    """Return all scenarios in the order of the file; size: one of SIZES."""
    tables: dict[str, dict[str, Any]] = tomllib.loads(path.read_text("utf-8"))
    found = []
    for name, table in tables.items():
        sizes = {small: table.pop(small) for small in SIZES[1:]}
        found.append(PeerScenario(name=name, **(table | sizes.get(size, {}))))
    return found
