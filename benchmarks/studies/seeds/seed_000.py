"""Large bodies.

How much does a dequeue read if bodies are large? The document (for SQL Server) starts with one wide
table, a select for update, an update and a select. It then moves the bodies to a second table, and
ends with one statement that skips locked rows. It counts 1,695 and 1,546 logical reads for batches
of 10, and 553 for a batch of 100. Here a read is a block of a table, index or sequence, without
TOAST; the figure is the median of nine dequeues. The other forms keep processed rows, as in the
document.
"""

import base64
import random
import statistics
from collections.abc import Iterator

from benchmarks.harness.measure import Target
from benchmarks.harness.results import Results
from benchmarks.harness.scenarios import Scenario
from benchmarks.studies.seeds import common

_BATCHES = (10, 100)
_POOL = 1 << 20

_META = f"""
create table {{table}} (
    queue_id        {common.KEY["postgres"]},
    queue_date_time timestamp not null default clock_timestamp(),
    title           varchar(255) not null,
    status          integer not null default 0{{more}}
);
create index on {{table}} (queue_date_time, status) include (title)"""

_WIDE = {
    "install": _META.format(table="queue_slow", more=",\n    text_data text not null"),
    "enqueue": "insert into queue_slow (title, text_data) values ('Item', %(body)s)",
    "find": """
        select queue_id from queue_slow
        where status = 0
        order by queue_date_time
        limit %(batch)s
        for update""",
    "mark": """
        update queue_slow set status = 1 where queue_id in %(ids)s and status = 0""",
    "read": """
        select queue_id, queue_date_time, title, text_data
        from queue_slow
        where queue_id in %(ids)s""",
    "complete": "update queue_slow set status = 2 where queue_id in %(ids)s",
}

_SPLIT = {name: text.replace("queue_slow", "queue_meta") for name, text in _WIDE.items()} | {
    "install": f"""{_META.format(table="queue_meta", more="")};
        create table queue_data (queue_id bigint not null unique, text_data text not null)
    """,
    "enqueue": """
        with m as (
            insert into queue_meta (title) values ('Item') returning queue_id
        )
        insert into queue_data (queue_id, text_data)
        select m.queue_id, %(body)s from m""",
    "read": """
        select m.queue_id, m.queue_date_time, m.title, d.text_data
        from queue_meta m
        join queue_data d on d.queue_id = m.queue_id
        where m.queue_id in %(ids)s""",
}

_ONE = {name: _SPLIT[name] for name in ("install", "enqueue", "complete")} | {
    "take": """
        with taken as (
            update queue_meta m
            set status = 1
            from (
                select q.queue_id
                from queue_meta q
                where q.status = 0
                limit %(batch)s
                for update skip locked
            ) x
            where m.queue_id = x.queue_id
            returning m.queue_id, m.queue_date_time, m.title
        )
        select t.queue_id, t.queue_date_time, t.title, d.text_data
        from taken t
        join queue_data d on d.queue_id = t.queue_id"""
}


def _forms(_engine: str) -> list[common.Form]:
    return [
        common.rowq_form(),
        common.Form("one_statement", "two tables; one statement updates, joins and returns", _ONE),
        common.Form("split_tables", "keys and bodies in two tables; select, update, join", _SPLIT),
        common.Form("queue_slow", "one wide table; select for update, update, select", _WIDE),
    ]


def queue_tables(url: str, form: common.Form, scenario: Scenario) -> common.Figures:
    """Count the reads of a dequeue from a full and a half processed queue, then drain it."""
    figures: common.Figures = {}
    with form.open(url) as client:
        client.fill(list(_bodies(scenario.messages, scenario.body_bytes)))
        client.settle()
        figures |= _reads(client, scenario.samples, "full")
        for _ in range(scenario.messages // 2 // _BATCHES[-1]):
            client.complete(client.dequeue(_BATCHES[-1]))
        client.maintain()
        figures |= _reads(client, scenario.samples, "half")
        worked, _ = common.work(form, url, scenario, client)
    return figures | worked


def _reads(client: common.Client, samples: int, when: str) -> common.Figures:
    """Return the median reads of a dequeue for both batch sizes."""
    figures: common.Figures = {}
    for batch in _BATCHES:
        client.complete(client.dequeue(batch))
        counts = []
        for _ in range(samples):
            before = client.reads()
            taken = client.dequeue(batch)
            counts.append(client.reads() - before)
            assert len(taken) == batch
            client.complete(taken)
        figures[f"dequeue_reads_{when}_{batch}"] = statistics.median(counts)
    return figures


def _bodies(count: int, greatest: int) -> Iterator[str]:
    """Yield incompressible bodies of 1 to `greatest` letters, the same in each run."""
    pool = base64.b64encode(random.Random(0).randbytes(_POOL)).decode()
    dice = random.Random(greatest)
    for _ in range(count):
        first = dice.randrange(_POOL)
        yield pool[first : first + dice.randint(1, greatest)]


def _targets(results: Results) -> Iterator[Target]:
    for when, words in (("full", "a full queue"), ("half", "a half processed queue")):
        for batch in _BATCHES:
            key = f"dequeue_reads_{when}_{batch}"
            found = results.between("queue_tables", key, "rowq", "one_statement")
            what = f"000: reads of a dequeue of {batch} from {words}, rowq / one_statement"
            yield Target(what, 0.333, False, found)


SEED = common.Seed(
    words=__doc__,
    forms=_forms,
    kinds={"queue_tables": queue_tables},
    columns={
        "queue_tables": {
            f"dequeue_reads_{when}_{batch}": f"reads / dequeue of {batch}, {when}"
            for batch in _BATCHES
            for when in ("full", "half")
        }
    },
    targets=_targets,
)
