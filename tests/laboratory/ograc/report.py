"""Installs rowq in an oGRAC, calls every routine, and writes OGRAC.md, the list of what ran.

Run it with python -m tests.laboratory.ograc.report --ogsql PATH --connect user/password@host:port;
the account must be empty and may create everything. What ran is noted in run.json. `make generate`
only writes the list anew: a file that has changed since the run is named there as one, and nothing
fails.
"""

import argparse
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

from tests.laboratory.ograc.calls import Calls
from tests.laboratory.ograc.client import (
    PACKAGES,
    SOURCE,
    TABLES,
    Client,
    files,
    install,
    public,
    routines,
    text_of,
    units,
)
from tests.laboratory.ograc.life import live
from tests.laboratory.ograc.races import race
from tests.laboratory.ograc.rules import RULES, rewrite
from tests.laboratory.ograc.source import PRIVATE
from tests.laboratory.ograc.stand_ins import CAUSES, MAY_BE_SILENT, UNREACHED
from tests.laboratory.ograc.waiters import wait_together
from tests.laboratory.record import File, as_json, digest, table, ways
from tests.laboratory.rules import Rule

PAGE = Path(__file__).parents[1] / "OGRAC.md"
RECORD = Path(__file__).with_name("run.json")
_NOT_GIVEN = {
    "tables/statistics.sql": "DBMS_STATS",
    "grants.sql": "roles",
    "compiled.sql": "USER_ERRORS",
    "partition_archive.sql": "online partitioning of a table",
    "doorbell.sql": "DBMS_AQ, DBMS_AQADM; test code was called in its place",
    "doorbell_off.sql": "DBMS_AQADM",
    "maintain_job.sql": "DBMS_SCHEDULER",
    "packages/rowq_body.sql": "put together here from the subprograms below",
    "packages/rowq_wait_body.sql": "put together here from the subprograms below",
}
_SILENT = "did not begin"
_HEAD = """\
<!-- Generated from ograc/run.json and sql/oracle by make generate. Do not edit. -->

# What oGRAC has executed

Written by `python -m tests.laboratory.ograc.report` after a run on {engine}.

oGRAC is a database of the openGauss family with a PL/SQL of its own. It is not Oracle Database,
which rowq has never run on. One session after the other called all routines
([life.py](ograc/life.py), [house.py](ograc/house.py), for groups, limits and predecessors
[ties.py](ograc/ties.py)), and each returned the rows and raised the errors of the contract. This
shows that statements, control flow and types do what they are meant to, one session at a time. Six
sessions then waited at one queue at once ([waiters.py](ograc/waiters.py)): one led by a lock of
oGRAC's own and heard the ring of a test's doorbell, and each of four messages ended one wait. Two
sessions then named and ended the same messages at once ([races.py](ograc/races.py)): by oGRAC's
locks of rows `complete` waited for the producer, everything else passed over what it held, and no
message was forgotten. It shows nothing about Oracle's locks, other locks between sessions, plans,
hints, the order in which `for update skip locked` locks, serializable transactions, JSON, base64,
LOB locators, `authid`, rights, NLS settings, partitions, or the numbers of Oracle's own errors. No
more than ten messages have waited for one, so that the steps of a thousand did not run. RQ705 and
RQ713 were not raised.

How a file reached it:

- **as written**: no rule has changed its own text. Everywhere, `authid definer` and comments are
  left out, a note that the subprogram begins is put in, and calls are replaced as said below.
- **rewritten**: the rules named, of [rules.py](ograc/rules.py).
- **in its callers**: it takes or returns a type of the package, which oGRAC does not have, so its
  text, rewritten where rules are named, stands in the place of every call
  ([inline.py](ograc/inline.py)). The other private subprograms are standalone.
- **a stand-in**: made of things that oGRAC lacks; test code stood in its place
  ([stand_ins.py](ograc/stand_ins.py)), and the product's text was **not executed**.
- **not executed**: left out.

"Began" is what a note at the start of each subprogram has recorded in the run; what a rule marks
with * was left out of a file that otherwise ran. "Changed since" are the files that are not those
that ran: how one would be rewritten is of today, and whether it runs is not known.
"""
_BUILD = """## How the engine was had

Sources: `opengauss-mirror/oGRAC` on GitHub. It builds on Debian 12 in ten minutes on two cores:
`-DUSE_OSS_BUILD=ON`, the distribution's libraries (aio, lz4, numa, pcre2, protobuf-c, ssl, zstd),
`libboundscheck` as `libsecurec.a`, `-Werror` taken out; on x86-64, `cm_atomic_barrier_read` is
missing and is `__atomic_load_n`. It runs as one node of a cluster: `cms gcc -reset`, `cms node
-add`, `cms res -add`, `cms server -start`, then `ogracd nomount` with `CLUSTER_DATABASE = TRUE`
and `CPU_GROUP_INFO` set, as a user that is not root, and `create database clustered`. The package
`utl_raw` comes with its `create_3rd_pkg.sql`; the account needs `grant dba`.
"""


@dataclass(frozen=True)
class Run:
    """What a run has shown.

    Attributes:
        engine: what it ran on.
        files: the digest then of each file of sql/oracle that is still the same.
        began: the subprograms that began.
        refused: the numbers of the errors that each routine has raised.
    """

    engine: str
    files: dict[str, str]
    began: list[str]
    refused: dict[str, list[int]]


def last_run() -> Run:
    """Return what is noted of the last run and still so."""
    run = Run(**json.loads(RECORD.read_text("utf-8")))
    today = {file: digest(text_of(file)) for file in files()}
    same = {file: then for file, then in run.files.items() if then == today.get(file)}
    return replace(run, files=same)


def given(seen: set[str]) -> list[File]:
    """Return what became of each file; seen are the subprograms that began."""
    lines = [_line(f"tables/{name}.sql") for name in TABLES]
    lines += [File(file, "not executed", cause, "") for file, cause in _NOT_GIVEN.items()]
    lines += [_line(f"packages/{name}.sql") for name in ("rowq", "rowq_wait")]
    for name in PACKAGES:
        lines += [_line(f"packages/{name}{part}.sql") for part in ("", "_body")]
    lines.append(_line("internal/types.sql"))
    lines.append(File("helpers/ids.sql", "a stand-in", CAUSES["ids"], ""))
    lines.append(_line("helpers/put.sql", "put" in seen))
    lines.append(File("waiting/messages_json.sql", "a stand-in", CAUSES["messages_json"], ""))
    lines.append(_line("waiting/look.sql", "look" in seen))
    private = {f"internal_{path.stem}" for path in (SOURCE / "internal").glob("*.sql")}
    for name in sorted(private - {"internal_types"}):
        file = f"internal/{name.removeprefix('internal_')}.sql"
        if name in UNREACHED:
            lines.append(File(file, "not executed", UNREACHED[name], ""))
        elif name in CAUSES:
            lines.append(File(file, "a stand-in", CAUSES[name], ""))
        else:
            way = "in its callers" if routines()[name].is_private else ""
            lines.append(_line(file, name in seen, way))
    lines += [_line(f"routines/{name}.sql", name in seen) for name in public()]
    return lines


def _line(file: str, began: bool | None = None, way: str = "") -> File:
    """Return what became of a file that was executed; began is None where no note records it."""
    used = rules_for(file)
    names = "; ".join(rule.what + ("*" if rule.is_left_out else "") for rule in used)
    seen = "" if began is None else "began" if began else _SILENT
    return File(file, way or ("rewritten" if names else "as written"), names, seen)


def rules_for(file: str) -> list[Rule]:
    """Return the rules that change a file of sql/oracle."""
    return rewrite(text_of(file))[1]


def faults() -> list[str]:
    """Return what must be mended in the rewriting before it can run."""
    used = {rule.what for file in files() for rule in rules_for(file)}
    found = [f"a rule changes nothing: {one.what}" for one in RULES if one.what not in used]
    private = {name for name, routine in routines().items() if routine.is_private}
    for name, text in units().items():
        called = set(re.findall(r"\b(internal_\w+)\s*\(", text)) & private
        if called or PRIVATE.search(text.partition("\nis\n")[0]):
            found.append(f"a type of the package stands between two units: {name}")
    return found


def page(run: Run) -> str:
    """Return the text of the page."""
    lines = [
        line if line.name in run.files else replace(line, seen=None)
        for line in given(set(run.began))
    ]
    errors = "".join(
        f"| `{name}` | {', '.join(f'ORA{code}' for code in sorted(codes, reverse=True))} |\n"
        for name, codes in sorted(run.refused.items())
    )
    return (
        _HEAD.format(engine=run.engine)
        + f"\n## Files\n\n{len(lines)} files: {ways(lines)}.\n\n{table(lines)}"
        f"\n## Refusals\n\n| routine | raised |\n|---|---|\n{errors}\n{_BUILD}"
    )


def main() -> None:
    """Install, call and note what ran on an oGRAC; write the page."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--ogsql", type=Path, required=True, help="path of the client program")
    parser.add_argument("--connect", required=True, help="user/password@host:port")
    options = parser.parse_args()
    note(_ran(Client(options.ogsql, options.connect)))
    PAGE.write_text(page(last_run()), "utf-8")


def note(run: Run) -> None:
    """Write what a run has shown."""
    RECORD.write_text(as_json(vars(run)), "utf-8")


def _ran(client: Client) -> Run:
    """Install and call everything, and return what was seen."""
    if wrong := faults():
        raise SystemExit("\n".join(wrong))
    install(client)
    calls = Calls(client)
    live(calls)
    wait_together(client, calls)
    race(client, calls)
    if missing := set(public()) - calls.returned:
        raise SystemExit(f"never called: {', '.join(sorted(missing))}")
    began = {row["name"] for row in client.rows("select distinct name from rowq_seen;\n")}
    lines = given(began)
    silent = {line.name for line in lines if line.seen == _SILENT} - MAY_BE_SILENT.keys()
    if silent:
        raise SystemExit(f"never began: {', '.join(sorted(silent))}")
    return Run(
        engine=calls.text("rowq_engine()").partition(" build")[0],
        files={line.name: digest(text_of(line.name)) for line in lines},
        began=sorted(began & routines().keys()),
        refused={name: sorted(codes) for name, codes in sorted(calls.refused.items())},
    )


if __name__ == "__main__":
    main()
