"""Counts what was written to the log, by kind of record and by table or index, with pg_waldump."""

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psycopg

_RECORD = re.compile(
    r"^rmgr: (?P<manager>\S+)\s+len \(rec/tot\):\s*(?P<record>\d+)/\s*(?P<total>\d+),"
    r".* desc: (?P<kind>[A-Z_+]+)(?P<rest>.*)$"
)
_RELATION = re.compile(r"rel \d+/(\d+)/(\d+)")


@dataclass(frozen=True, slots=True)
class Written:
    """Records of one kind on one relation: how many, their bytes, and how much are page images.

    relation: the table or index, "" for records of none, such as commits.
    """

    kind: str
    relation: str
    records: int
    bytes: int
    image_bytes: int


def written(bin_dir: Path, connection: psycopg.Connection, start: str, end: str) -> list[Written]:
    """Return what the log has between two places, the most bytes first.

    bin_dir: PostgreSQL's programs. connection: names the files of its database's relations.
    Raises subprocess.CalledProcessError if the log cannot be read.
    """
    row = connection.execute("show data_directory").fetchone()
    assert row is not None
    # Commits that did not wait for the disk may not be in the file yet; one that waits brings them.
    with connection.transaction():
        connection.execute("set local synchronous_commit = on")
        connection.execute("select pg_logical_emit_message(true, 'rowq_bench', '')")
    command = [str(bin_dir / "pg_waldump"), "--path", f"{row[0]}/pg_wal", "-s", start, "-e", end]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return add_up(done.stdout.splitlines(), _relations(connection))


def add_up(lines: Iterable[str], relations: dict[str, str]) -> list[Written]:
    """Add up pg_waldump's lines; relations: names by the number of the file."""
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for line in lines:
        found = _RECORD.match(line)
        if found is None:
            continue
        relation = _RELATION.search(found["rest"])
        name = relations.get(relation[2], "another") if relation else ""
        total = sums[f"{found['manager']} {found['kind']}", name]
        total[0] += 1
        total[1] += int(found["total"])
        total[2] += int(found["total"]) - int(found["record"])
    return sorted((Written(*key, *value) for key, value in sums.items()), key=lambda w: -w.bytes)


def _relations(connection: psycopg.Connection) -> dict[str, str]:
    rows = connection.execute(
        "select pg_relation_filenode(c.oid)::text, c.relname from pg_class c"
        " where pg_relation_filenode(c.oid) is not null"
    ).fetchall()
    return dict(rows)
