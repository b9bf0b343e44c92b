"""MariaDB as the harness runs it."""

from __future__ import annotations

from benchmarks.rowq_bench.mariadb.kinds import KINDS
from benchmarks.rowq_bench.mariadb.lab import open_lab
from benchmarks.rowq_bench.mariadb.systems import all_systems
from benchmarks.rowq_bench.runner import Engine
from benchmarks.rowq_bench.scenarios import SCENARIOS as POSTGRES_SCENARIOS

SCENARIOS = POSTGRES_SCENARIOS.with_name("scenarios_mariadb.toml")


MARIADB = Engine("mariadb", lambda: [*all_systems()], KINDS, lambda url, _: open_lab(url))
