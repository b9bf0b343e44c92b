"""Seed 000: a wide queue table, a split one, one statement; their reads, locks and rates."""

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness.measure import Figures
from benchmarks.harness.observe import Observer
from benchmarks.harness.results import Results
from benchmarks.harness.scenarios import Scenario
from benchmarks.harness.targets import Target
from benchmarks.studies.seeds.base import Form, Seed, rowq_form, sql_forms
from benchmarks.studies.seeds.client import SqlClient
from benchmarks.studies.seeds.dialects import Dialect
from benchmarks.studies.seeds.work import fill, rows_locked, work

FOLDER = Path(__file__).parent
_BATCHES = (10, 100)
_ORIGINS = {
    "queue_slow": "one wide table, select for update, update, select",
    "split_tables": "keys and bodies in two tables, select for update, update, select",
    "one_statement": "the two tables, locked rows passed over, update and return at once",
}


def queue_tables(dialect: Dialect, url: str, form: Form, scenario: Scenario) -> dict[str, Any]:
    """Count reads on a full queue and when half of it is processed, then work beside producers."""
    with form.open_client(url, scenario.body_bytes) as client, dialect.observe(url) as observer:
        fill(client, scenario)
        figures = _reads(client, observer, scenario.samples, "full")
        while len(client.handled) < scenario.messages // 2:
            client.complete(client.dequeue(_BATCHES[-1]))
        figures |= _reads(client, observer, scenario.samples, "half")
        figures |= work(dialect, url, form, scenario, client)
        client.fill(scenario.batch)
        figures["rows_locked"] = rows_locked(client, observer, scenario.batch)
    return figures


def _reads(client: SqlClient, observer: Observer, samples: int, when: str) -> Figures:
    """Return the median reads of a dequeue and of its complete, for both sizes of a batch."""
    figures: Figures = {}
    for batch in _BATCHES:
        client.complete(client.dequeue(batch))
        found: dict[str, list[int]] = {}
        for _ in range(samples):
            taken: list[Any] = []
            acts: dict[str, Callable[[], object]] = {
                "dequeue": lambda: taken.extend(client.dequeue(batch)),  # noqa: B023
                "complete": lambda: client.complete(taken),  # noqa: B023
            }
            for name, act in acts.items():
                before = observer.counts(client.session)
                act()
                used = observer.counts(client.session).since(before)
                found.setdefault(f"{name}_reads", []).append(used.reads)
                found.setdefault(f"{name}_body_reads", []).append(used.body_reads)
            assert len(taken) == batch
        figures |= {
            f"{name}_{when}_{batch}": statistics.median(values) for name, values in found.items()
        }
    return figures


def _forms(engine: str) -> list[Form]:
    return [rowq_form(engine), *sql_forms(_ORIGINS, FOLDER, engine)]


def _targets(_engine: str, results: Results) -> Iterator[Target]:
    states = {"full": "a full queue", "half": "a queue of which half is processed"}
    for when, words in states.items():
        for batch in reversed(_BATCHES):
            key = f"dequeue_reads_{when}_{batch}"
            yield Target(
                f"Logical reads of a dequeue of {batch} from {words}, rowq / one_statement",
                0.333,
                False,
                results.between("queue_tables", key, "rowq", "one_statement"),
            )


_STATES = {"full": "full queue", "half": "half processed"}
_COLUMNS = (
    {
        f"dequeue_reads_{when}_{batch}": f"reads / dequeue of {batch}, {words}"
        for batch in _BATCHES
        for when, words in _STATES.items()
    }
    | {"dequeue_body_reads_full_10": "reads of bodies / dequeue of 10"}
    | {"complete_reads_full_10": "reads / complete of 10"}
    | {"rows_locked": "rows locked / dequeue of 10"}
    | {
        "messages_per_second": "messages/s",
        "enqueued_per_second": "enqueued/s",
        "server_cpu_us_per_message": "server CPU µs / message",
        "log_bytes_per_message": "log bytes / message",
        "lock_waits": "lock waits",
        "lock_wait_seconds": "seconds waited",
        "deadlocks": "deadlocks",
        "double_runs": "double runs",
    }
)

SEED = Seed(
    name="seed_000",
    title="Seed 000: wide table, split tables, one statement",
    words=(
        "The document counts 1,695 logical reads for its wide table and 1,546 for its split tables,"
        " in batches of 10, and 553 for one statement with a batch of 100, those of bodies apart,"
        " on SQL Server. Reads of bodies are apart on PostgreSQL (TOAST) and included on MariaDB."
    ),
    folder=FOLDER,
    forms=_forms,
    kinds={"queue_tables": queue_tables},
    columns={"queue_tables": _COLUMNS},
    targets=_targets,
)
