"""Seed 003: claims by a status and an owner, and what becomes of those of crashed workers."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.harness.results import Results
from benchmarks.harness.targets import Target
from benchmarks.studies.seeds.base import Form, Seed, rowq_form, sql_form
from benchmarks.studies.seeds.seed_003.claims import OwnerClient, claims
from benchmarks.studies.seeds.seed_003.crashes import crashes

FOLDER = Path(__file__).parent

WORDS = """
Messages in one table are claimed by writing a status and the number of the session into them, ten
at a time: found by a select for update and marked by an update, or marked by an update with a limit
and then selected. PostgreSQL has no update with a limit, and runs what is nearest to it. On MariaDB
a call of rowq runs some fifteen short statements, where these forms run three, and at ten messages
a claim that weighs; no session of rowq waits for another.

What a crashed worker had claimed is set back by age: by age alone, or only where the owner is no
session of the server, as the document has it. An age of ten minutes is two seconds here, and so is
rowq's lease; both are looked after every quarter of a second. Four workers have five messages each.
One is killed, one works on its first message for two and a half times the limit, one does the same
and loses its connections meanwhile, one is suspended for that time and then goes on; a fifth takes
what comes back. "Run twice" counts the messages that the fifth and a worker that lived both began,
by the diaries of the workers. rowq's are its own `Worker`, which extends its leases; a suspended
process cannot do so, and on waking up it ends the message it was at and leaves the others alone.
"""


def _forms(engine: str) -> list[Form]:
    def form(name: str, origin: str) -> Form:
        return sql_form(name, origin, FOLDER, engine, OwnerClient)

    owned = form("claim_update_limit", "update ... limit with an owner, then select one's own")
    age = "update ... limit with an owner; claims are reset by their age"
    return [
        rowq_form(engine),
        form("claim_for_update", "select ... for update, then update, in one transaction"),
        owned,
        replace(owned, name="reset_by_age", origin=age),
        replace(
            owned,
            name="reset_by_age_and_session",
            origin=f"{age}, where the owner is no session of the server",
        ),
    ]


def _targets(_engine: str, results: Results) -> Iterator[Target]:
    for form in ("claim_for_update", "claim_update_limit"):
        rate = results.between("claims_10", "messages_per_second", "rowq", form)
        yield Target(f"Claims of ten by eight workers: rate, rowq / {form}", 1.0, True, rate)
    for name, words in (
        ("slow_twice", "that works long"),
        ("cut_off_twice", "that loses its connections"),
    ):
        found = results.figure("crashes", "rowq", name)
        yield Target(f"Messages of a worker {words} that rowq ran twice", 0, False, found)
    back = results.figure("crashes", "rowq", "killed_back")
    yield Target("Messages of a killed worker that rowq brought back, of five", 5, True, back)


SEED = Seed(
    name="seed_003",
    title="Seed 003: claims by an owner, and crashed workers",
    words=WORDS.strip(),
    folder=FOLDER,
    forms=_forms,
    kinds={"claims": claims, "crashes": crashes},
    columns={
        "claims": {
            "messages_per_second": "messages/s",
            "lock_waits": "lock waits",
            "lock_wait_seconds": "seconds waited",
            "deadlocks": "deadlocks",
            "log_bytes_per_message": "log bytes/message",
            "double_runs": "run twice",
        },
        "crashes": {
            "killed_back": "killed: came back, of 5",
            "killed_back_seconds": "killed: seconds until the last was back",
            "slow_twice": "slow: run twice",
            "cut_off_twice": "cut off: run twice",
            "suspended_taken_over": "suspended: taken over meanwhile",
            "suspended_twice": "suspended: run twice",
            "never_done": "never done",
        },
    },
    targets=_targets,
)
