"""PostgreSQL as the harness runs it."""

from benchmarks.engines.postgres.lab import SETTINGS, open_lab
from benchmarks.harness.runner import Engine
from benchmarks.studies.queues.kinds import KINDS
from benchmarks.studies.queues.systems import bare, rowq

POSTGRES = Engine(
    "postgres",
    lambda: [rowq(), bare()],
    KINDS,
    lambda url, home: open_lab(url, home, SETTINGS),
)
