"""Claims by an owner, and crashed workers.

How is a message marked as taken, and what releases it if its worker crashes? The document (for
MySQL) warns against select for update, and marks rows by an update with a limit. It resets claims
by age: ten minutes there, two seconds here, as rowq's lease. A worker with five messages is killed,
works long on its first, loses its connections during that, or is suspended; another worker takes
the released messages. rowq runs its own `Worker`, which extends its leases. A suspended worker
cannot extend them; when resumed, it ends its current message.
"""

import logging
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import rowq
from benchmarks.harness.measure import Target
from benchmarks.harness.results import Results
from benchmarks.harness.scenarios import Scenario
from benchmarks.studies.seeds import common

_BATCH = 5
_CASES = {"killed": 2.5, "slow": 2.5, "cut_off": 2.5, "suspended": 0.5}
"""Length of each worker's first message, in limits; the others are short."""
_RESUMED, _LAST = 2.5, 3.5
_SIGNALS = {"killed": signal.SIGKILL, "suspended": signal.SIGSTOP}
_ORIGINS = {
    "claim_for_update": "select for update, then update, in one transaction",
    "claim_update_limit": "update with a limit and an owner, then select its own rows",
    "reset_by_age": "claim_update_limit; claims are reset by their age",
    "reset_by_age_and_session": "the same, if the owner's session has ended",
}
_WORDS = {
    "postgres": {
        "now": "clock_timestamp()",
        "me": "pg_backend_pid()",
        "sessions": "select pid from pg_stat_activity",
        "age": "%(limit)s * interval '1 second'",
        "of_clients": "backend_type = 'client backend' and pid <> pg_backend_pid()",
        "cut": "select pg_terminate_backend({})",
    },
    "mariadb": {
        "now": "current_timestamp(6)",
        "me": "connection_id()",
        "sessions": "select id from information_schema.processlist",
        "age": "interval %(limit)s second",
        "of_clients": "command <> 'Daemon' and id <> connection_id()",
        "cut": "kill {}",
    },
}


def _sql(name: str, engine: str) -> dict[str, str]:
    words = _WORDS[engine]
    free = "where owner = 0 and status = 'unsent' limit %(batch)s"
    mark = "update email set status = 'claimed', owner = {me}, ts = {now}".format(**words)
    # PostgreSQL has no update with a limit; the nearest is an update of the rows a select locks.
    limited = f"where id = any (array(select id from email {free} for update))"
    sql = {
        "install": f"""
            create table email (
                id     {common.KEY[engine]},
                status varchar(10) not null default 'unsent',
                owner  integer not null default 0,
                ts     timestamp(6) not null default current_timestamp(6),
                body   varchar(255) not null
            );
            create index email_ix on email (owner, status, ts)""",
        "enqueue": "insert into email (body) values (%(body)s)",
        "complete": "delete from email where id in %(ids)s",
    }
    if name == "claim_for_update":
        sql["find"] = f"select id, body from email {free} for update"
        sql["mark"] = f"{mark} where id in %(ids)s"
        return sql
    sql["claim"] = f"{mark} {limited if engine == 'postgres' else free}"
    sql["own"] = "select id, body from email where owner = {me} and status = 'claimed'".format(
        **words
    )
    if name.startswith("reset"):
        sql["reset"] = (
            "update email set owner = 0, status = 'unsent'"
            " where status = 'claimed' and ts < {now} - {age}".format(**words)
        )
    if name.endswith("session"):
        sql["reset"] += f" and owner not in ({words['sessions']})"
    return sql


def crashes(url: str, form: common.Form, scenario: Scenario) -> common.Figures:
    """Disturb a worker with five messages; another worker takes the released ones."""
    figures: common.Figures = {}
    for case in _CASES:
        with form.open(url) as control, tempfile.NamedTemporaryFile(prefix="rowq-") as diary:
            control.fill([case] * _BATCH)
            own, rescued = _play(case, url, form, control, Path(diary.name), scenario.seconds)
        figures[f"{case}_back"] = len(rescued)
        figures[f"{case}_back_seconds"] = round(max(rescued.values(), default=0.0), 2)
        figures[f"{case}_twice"] = len(own & rescued.keys())
    return figures


def _play(
    case: str, url: str, form: common.Form, control: common.Client, diary: Path, limit: float
) -> tuple[set[int], dict[int, float]]:
    """Return the messages that the worker began, and the seconds until each was released."""
    args = (url, form, diary, _CASES[case] * limit, int(limit))
    worker = multiprocessing.get_context("spawn").Process(target=_worker, args=args, daemon=True)
    worker.start()
    assert worker.pid is not None
    rescued: dict[int, float] = {}
    try:
        while not diary.read_text("ascii"):
            assert worker.is_alive(), "the worker ended too early"
            time.sleep(0.01)
        disturbed = time.monotonic()
        _disturb(case, worker.pid, control)
        while (passed := time.monotonic() - disturbed) < _LAST * limit:
            if case == "suspended" and passed > _RESUMED * limit:
                os.kill(worker.pid, signal.SIGCONT)
            if "reset" in control.sql:
                control.run(control.sql["reset"], limit=limit)
            control.maintain()
            taken = control.complete(control.dequeue(_BATCH))
            rescued |= dict.fromkeys(taken, time.monotonic() - disturbed)
            time.sleep(0.1)
    finally:
        worker.kill()
        worker.join()
    return {int(line) for line in diary.read_text("ascii").split()}, rescued


def _disturb(case: str, pid: int, control: common.Client) -> None:
    if case in _SIGNALS:
        os.kill(pid, _SIGNALS[case])
    if case == "cut_off":
        words = _WORDS["postgres" if control.is_postgres else "mariadb"]
        for (number,) in control.run(f"{words['sessions']} where {words['of_clients']}"):
            control.run(words["cut"].format(number))


def _worker(url: str, form: common.Form, diary: Path, first_seconds: float, limit: int) -> None:
    """Handle messages; write each to the diary first, which survives a kill."""

    def handle(number: int) -> None:
        is_first = not diary.read_text("ascii")
        with diary.open("a", encoding="ascii") as file:
            file.write(f"{number}\n")
        time.sleep(first_seconds if is_first else 0.02)

    if not form.sql:
        logging.getLogger("rowq").setLevel(logging.ERROR)
        work = partial(rowq.Worker, batch_size=_BATCH, lease_seconds=limit, maintain_seconds=0.25)
        work(url, common.QUEUE, lambda message: handle(message.message_id)).run()
        return
    client = form.open(url)
    for number in client.dequeue(_BATCH):
        handle(number)
        try:
            client.complete([number])
        except common.DRIVER_ERRORS:
            client = form.open(url)
            client.complete([number])


def _targets(results: Results) -> Iterator[Target]:
    for form in ("claim_for_update", "claim_update_limit"):
        rate = results.between("claims_10", "messages_per_second", "rowq", form)
        yield Target(f"003: claims of ten by eight workers: rate, rowq / {form}", 1.0, True, rate)
    for case in ("slow", "cut_off"):
        found = results.figure("crashes", "rowq", f"{case}_twice")
        yield Target(
            f"003: messages of a worker that is {case.replace('_', ' ')}, run twice",
            0,
            False,
            found,
        )
    found = results.figure("crashes", "rowq", "killed_back")
    yield Target("003: released messages of a killed worker, of five", 5, True, found)


SEED = common.Seed(
    words=__doc__,
    forms=partial(common.forms, _ORIGINS, _sql),
    kinds={"claims": common.drain, "crashes": crashes},
    columns={
        "claims": {},
        "crashes": {
            "killed_back": "killed: released, of 5",
            "killed_back_seconds": "killed: seconds until then",
            "slow_twice": "slow: run twice",
            "cut_off_twice": "cut off: run twice",
            "suspended_twice": "suspended: run twice",
        },
    },
    targets=_targets,
)
