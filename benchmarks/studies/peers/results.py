"""The results of the set peers, with rowq compared round by round."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.harness.measure import Spread, spread

OWN, FLOOR = "rowq", "bare"
_CLEARLY = 1.02


@dataclass(frozen=True, slots=True)
class Measure:
    """A compared figure. words: its name. more: whether more is better."""

    key: str
    words: str
    more: bool = False


RATE = Measure("messages_per_second", "messages/s", more=True)
SERVER_CPU = Measure("server_cpu_us_per_message", "server CPU")
BUFFERS = Measure("buffers_per_message", "buffers")
WAL = Measure("wal_bytes_per_message", "WAL")
FILL = Measure("fill_per_second", "put in / s", more=True)
_COSTS = (SERVER_CPU, Measure("client_cpu_us_per_message", "client CPU"), BUFFERS, WAL)
_LATENCY = (Measure("latency_ms_p50", "latency p50"), Measure("latency_ms_p99", "latency p99"))
COMPARED: Mapping[str, tuple[Measure, ...]] = {
    "steady": (*_LATENCY, *_COSTS),
    "burst": (RATE, *_LATENCY, *_COSTS),
    "drain": (RATE, *_COSTS, FILL),
    "idle": (
        Measure("connections", "connections"),
        Measure("queries_per_second", "queries"),
        Measure("server_cpu_ms_per_second", "server CPU"),
        Measure("client_cpu_ms_per_second", "client CPU"),
    ),
}


@dataclass(frozen=True, slots=True)
class Beaten:
    """A figure in which another queue is better than rowq.

    ratio: rowq's divided by the other's, round by round.
    """

    scenario: str
    measure: Measure
    system: str
    ratio: Spread


class PeerResults:
    """The results of one run."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self.scenarios: dict[str, dict[str, Any]] = {s["name"]: s for s in data["scenarios"]}
        self.systems = [s["name"] for s in data["systems"] if "absent" not in s]
        self.variants = [s["name"] for s in data["systems"] if s.get("own") and "absent" not in s]
        others = {OWN, FLOOR, *self.variants}
        self.queues = [name for name in self.systems if name not in others]

    def rounds(self, scenario: str, system: str) -> dict[int, dict[str, Any]]:
        """Return a system's figures by round."""
        return {
            run["round"]: run["figures"]
            for run in self.data["runs"]
            if (run["scenario"], run["system"]) == (scenario, system)
        }

    def reason(self, scenario: str, system: str) -> str:
        """Return why a system lacks figures of a scenario or of some of its rounds."""
        for run in self.data["not_run"]:
            if (run["scenario"], run["system"]) == (scenario, system):
                return str(run["reason"])
        return ""

    def figure(self, scenario: str, system: str, key: str) -> Spread | None:
        """Return one figure over the rounds, None if not measured."""
        found = [figures.get(key) for figures in self.rounds(scenario, system).values()]
        values = [float(value) for value in found if value is not None]
        return spread(values) if values else None

    def between(self, scenario: str, key: str, system: str, other: str) -> Spread | None:
        """Return a figure of one system divided by another's, round by round."""
        ours, theirs = self.rounds(scenario, system), self.rounds(scenario, other)
        values = [
            ours[turn][key] / theirs[turn][key]
            for turn in sorted(ours.keys() & theirs.keys())
            if ours[turn].get(key) is not None and theirs[turn].get(key)
        ]
        return spread(values) if values else None

    def beaten(self) -> Iterator[Beaten]:
        """Yield the figures in which a queue is better than rowq by more than 2 %."""
        for name, scenario in self.scenarios.items():
            for measure in COMPARED[scenario["kind"]]:
                for system in self.queues:
                    ratio = self.between(name, measure.key, OWN, system)
                    if ratio is None or not _is_worse(ratio.median, more=measure.more):
                        continue
                    yield Beaten(name, measure, system, ratio)


def _is_worse(ratio: float, *, more: bool) -> bool:
    """Return whether rowq's figure divided by another's is worse by more than 2 %."""
    return ratio < 1 / _CLEARLY if more else ratio > _CLEARLY
