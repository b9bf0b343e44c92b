"""Chains of predecessors.

Is a join to the predecessor at dequeue correct and free of deadlocks? Each message takes one
millisecond of work. Chains of 200 follow each other in the table; in `chains_stuck` they follow a
chain of 2,000 that is due tomorrow. `chain_blocked` and `chain_join` keep a transaction open from
the dequeue to the delete, as in the document (for SQL Server); rowq commits both. The join reads
every blocked message before the first free one. "Order broken" counts messages dequeued before the
work on their predecessor ended.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial

import rowq
from benchmarks.harness.scenarios import Scenario
from benchmarks.harness.team import Gate
from benchmarks.studies.seeds import common

_LENGTH = 200
_HEAD = f"(case when n <= %(stuck)s then n = 1 else n %% {_LENGTH} = 1 end)"
_BODY = "rpad({}::text, 200, 'x')"
_SERIES = "select {} from generate_series(1, %(count)s) n"
_ID = f"id {common.KEY['postgres'].replace('always', 'by default')}"

_JOIN = {
    "install": f"""
        create table queue (
            {_ID}, predecessor_id bigint, data text not null, due timestamp default now()
        );
        create index on queue (due)""",
    "fill": f"""
        insert into queue (id, predecessor_id, data, due)
        select n, case when not {_HEAD} then n - 1 end, {_BODY.format("n")},
               now() + case when n = 1 and %(stuck)s > 0 then interval '1 day' else '0' end
        from generate_series(1, %(count)s) n;
        select setval(pg_get_serial_sequence('queue', 'id'), %(count)s)""",
    "enqueue": f"""
        insert into queue (predecessor_id, data)
        values (nullif(%(predecessor)s, 0), {_BODY.format("%(predecessor)s")})
        returning id""",
    "take": """
        select one.id, one.data
        from queue one
        left join queue predecessor on predecessor.id = one.predecessor_id
        where one.due <= now() and predecessor.id is null
        limit %(batch)s
        for update of one skip locked""",
    "complete": "delete from queue where id in %(ids)s",
}

_BLOCKED = {
    "install": f"""
        create table message ({_ID}, data text not null);
        create table ready (id bigint primary key);
        create table blocked (before_id bigint, id bigint, primary key (before_id, id))""",
    "fill": f"""
        insert into message (id, data) {_SERIES.format("n, " + _BODY.format("n"))};
        insert into ready {_SERIES.format("n")} where {_HEAD} and n > %(stuck)s;
        insert into blocked {_SERIES.format("n - 1, n")} where not {_HEAD};
        select setval(pg_get_serial_sequence('message', 'id'), %(count)s)""",
    "enqueue": f"""
        with held as (select id from message where id = %(predecessor)s for key share),
        added as (
            insert into message (data) values ({_BODY.format("%(predecessor)s")}) returning id
        ),
        waits as (insert into blocked select held.id, added.id from held, added),
        goes as (insert into ready select id from added where not exists (select from held))
        select id from added""",
    "take": """
        select r.id, m.data
        from (select id from ready order by id limit %(batch)s for update skip locked) r
        join message m on m.id = r.id""",
    "complete": """
        delete from message where id in %(ids)s;
        delete from ready where id in %(ids)s;
        insert into ready select id from blocked where before_id in %(ids)s;
        delete from blocked where before_id in %(ids)s""",
}


class ChainClient(common.Client):
    """A session with an open transaction from the dequeue to the delete."""

    def prepare(self, count: int, stuck: int) -> dict[int, int]:
        """Add chains; the first `stuck` messages are one chain that is due tomorrow."""
        self.run_all("fill", count=count, stuck=stuck)
        heads = {1, *range(stuck + 1, count + 1, _LENGTH)}
        return {n: 0 if n in heads else n - 1 for n in range(1, count + 1)}

    def add(self, predecessor: int) -> int:
        """Add a message after another one, 0 for none; return its id."""
        return int(self.run(self.sql["enqueue"], predecessor=predecessor)[0][0])

    def dequeue(self, batch: int) -> common.Ids:
        """Begin a transaction and dequeue a message in it."""
        self.run("begin")
        taken = self.take(batch)
        if not taken:
            self.run("rollback")
        return taken

    def complete(self, ids: common.Ids) -> common.Ids:
        """Delete the message and commit."""
        if ids:
            self.run_all("complete", ids=ids)
            self.run("commit")
        return ids


class RowqChainClient(common.RowqClient):
    """A session of rowq; a claim needs no open transaction."""

    def prepare(self, count: int, stuck: int) -> dict[int, int]:
        """Add chains, as ChainClient does."""
        self.queue.create_queue(common.QUEUE)
        found: dict[int, int] = {}
        firsts = sorted({1, *range(stuck + 1, count + 1, _LENGTH)})
        for first, past in zip(firsts, [*firsts[1:], count + 1], strict=True):
            chain = [
                rowq.NewMessage(
                    text=str(n).ljust(200, "x"),
                    predecessor_positions=[n - first] if n > first else None,
                    delay_seconds=86400 if n == first and n <= stuck else None,
                )
                for n in range(first, past)
            ]
            ids = [row.message_id for row in self.queue.enqueue_batch(common.QUEUE, chain)]
            found |= dict(zip(ids, [0, *ids[:-1]], strict=True))
        return found

    def add(self, predecessor: int) -> int:
        """Add a message after another one, 0 for none; return its id."""
        before = [predecessor] if predecessor else None
        return self.queue.enqueue(common.QUEUE, text="x" * 200, predecessor_ids=before).message_id


def chains(url: str, form: common.Form, scenario: Scenario) -> common.Figures:
    """Let consumers work on chains while producers add to their own chains.

    scenario.delayed: number of messages in a stuck chain before the others.
    """
    with form.open(url) as control:
        predecessors = control.prepare(scenario.messages, scenario.delayed)  # type: ignore[attr-defined]
        control.settle()
        before = control.reads()
        add = partial(_produce, form, url, scenario.seconds)
        figures, reports = common.work(
            form, url, scenario, control, [add] * scenario.producers, 0.001
        )
        control.wait_for_others()
        reads = control.reads() - before
    for report in reports:
        predecessors |= report.added
    return figures | {
        "reads_per_message": round(reads / max(figures["messages"], 1), 1),
        "broken_order": broken_order(reports, predecessors),
    }


def broken_order(reports: Sequence[common.Report], predecessors: Mapping[int, int]) -> int:
    """Return the number of messages dequeued before the work on their predecessor ended."""
    done = [run for report in reports for run in report.done]
    ended = {number: end for number, _, end in done}
    known = ((start, predecessors.get(number, 0)) for number, start, _ in done)
    return sum(start < ended.get(before, float("inf")) for start, before in known if before)


def _produce(form: common.Form, url: str, seconds: float, gate: Gate) -> common.Report:
    """Add messages to this session's own chain, at most one every 2 milliseconds."""
    report, last = common.Report(), 0
    with form.open(url) as client:
        end = gate.wait() + seconds
        while time.monotonic() < end:
            try:
                added = client.add(last)  # type: ignore[attr-defined]
                report.added[added], last = last, added
            except common.DRIVER_ERRORS as error:
                client.roll_back(error)
            time.sleep(0.002)
        report.retries = client.retries
    return report


def _forms(_engine: str) -> list[common.Form]:
    apart = "a separate table for messages with a predecessor"
    join = "one table, a join at dequeue, skip locked"
    return [
        common.rowq_form(client=RowqChainClient),
        common.Form("chain_blocked", apart, _BLOCKED, ChainClient),
        common.Form("chain_join", join, _JOIN, ChainClient),
    ]


SEED = common.Seed(
    words=__doc__,
    forms=_forms,
    kinds={"chains": chains},
    columns={"chains": {"reads_per_message": "reads / message", "broken_order": "order broken"}},
)
