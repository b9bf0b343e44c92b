"""MariaDB as the harness runs it."""

from benchmarks.engines.mysql.lab import open_lab
from benchmarks.harness.runner import Engine
from benchmarks.harness.scenarios import SCENARIOS as POSTGRES_SCENARIOS
from benchmarks.studies.queues_mariadb.kinds import KINDS
from benchmarks.studies.queues_mariadb.systems import all_systems

SCENARIOS = POSTGRES_SCENARIOS.with_name("scenarios_mariadb.toml")


MARIADB = Engine("mariadb", lambda: [*all_systems()], KINDS, lambda url, _: open_lab(url))
