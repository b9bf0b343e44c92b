"""Reads the scenarios of this set from scenarios_peers.toml, whose head explains the fields."""

from dataclasses import dataclass, field

from benchmarks.harness.scenarios import SCENARIOS as POSTGRES_SCENARIOS
from benchmarks.harness.scenarios import scenario_values

SCENARIOS = POSTGRES_SCENARIOS.with_name("scenarios_peers.toml")


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
    keys: int = 0
    holder: str = ""

    def shares(self) -> list[int]:
        """Return the workers of each process; a process without any is left out."""
        each, more = divmod(self.workers, self.processes)
        shares = [each + (number < more) for number in range(self.processes)]
        return [share for share in shares if share]


def load_peer_scenarios(size: str = "full") -> list[PeerScenario]:
    """Return all scenarios in the order of the file; size: one of the harness's SIZES."""
    return [PeerScenario(**values) for values in scenario_values(SCENARIOS, size)]
