"""Notes what a run of the tests has done on a Babelfish, for BABELFISH.md.

A plugin that is asked for: `pytest -p tests.laboratory.babelfish.record ... PATHS`. What is known
of a file of tests, or of a file of SQL that has changed, is replaced when it runs again.
"""

import json
import re
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rowq.sqlserver.engine import ENGINE
from tests.engines.base import TO_RUN
from tests.engines.provide import SERVERS
from tests.laboratory.record import as_json, digest

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "sql" / "sqlserver"
RECORD = Path(__file__).with_name("run.json")

# A call counts when it has returned; databases that a test has dropped took theirs with them.
_CALLS = """
    select lower(f.funcname), f.calls
    from pg_catalog.pg_stat_user_functions f
    where f.schemaname = ?
    """
# By then PostgreSQL has told of all that an idle session did.
_SECONDS_TO_TELL = 11.0
_PROCEDURE = re.compile(r"^create or alter procedure rowq\.(\w+)", re.MULTILINE)
_LACKS = re.compile(r" lacks ([\w, ]+);")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --babelfish-record."""
    parser.addoption(
        "--babelfish-record", metavar="FILE", type=Path, default=RECORD, help="where it is noted"
    )


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Read the server's counters, before its databases are dropped, and write the file."""
    config = session.config
    if exitstatus not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
        return
    for server in config.stash[SERVERS].running.values():
        if getattr(server, "is_babelfish", False):
            _note(config, server)


def _note(config: pytest.Config, server: Any) -> None:
    time.sleep(_SECONDS_TO_TELL)
    calls: Counter[str] = Counter()
    with closing(ENGINE.connect(server.url)) as connection:
        for name in server.made:
            calls.update(dict(map(tuple, connection.execute(_CALLS, f"{name}_rowq").fetchall())))
    path: Path = config.getoption("--babelfish-record")
    record = read(path)
    record["how"] = server.how.removeprefix("given URL, ")
    record["tests"] |= _tests(config)
    for file in files():
        now = digest(text_of(file))
        then, before = record["files"].get(file, (now, 0))
        returned = calls[(procedure(file) or "").lower()]
        record["files"][file] = [now, returned + (before if then == now else 0)]
    path.write_text(as_json(current(record)), "utf-8")


def read(path: Path) -> dict[str, Any]:
    """Return what is noted: how the server was had, and of files of tests and of SQL.

    tests: how many came out how. files: the digest of a file of sql/sqlserver when it ran, and how
    often its procedure has returned since.
    """
    if not path.exists():
        return {"how": "", "files": {}, "tests": {}}
    record: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return record


def current(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record, sorted, without files that are no longer those that ran."""
    today = {file: digest(text_of(file)) for file in files()}
    ran = {file: known for file, known in record["files"].items() if known[0] == today.get(file)}
    return {
        "how": record["how"],
        "files": dict(sorted(ran.items())),
        "tests": dict(sorted(record["tests"].items())),
    }


def _tests(config: pytest.Config) -> dict[str, dict[str, int]]:
    """Return how many tests of each file came out how; those skipped by what is lacking."""
    found: dict[str, Counter[str]] = {}
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    for outcome in ("passed", "failed", "error", "skipped", "xfailed"):
        for report in reporter.stats.get(outcome, []):
            if any(key == "server" for key, _ in getattr(report, "user_properties", [])):
                file = report.nodeid.partition("::")[0]
                word = f"skipped: {_why(report)}" if outcome == "skipped" else outcome
                found.setdefault(file, Counter())[word] += 1
    return {file: dict(counts) for file, counts in found.items()}


def _why(report: Any) -> str:
    """Return why a test was skipped, without the server's name."""
    words = str(report.longrepr[2]).removeprefix("Skipped: ")
    if lacks := _LACKS.search(words):
        return f"needs {lacks[1]}"
    return words.partition(TO_RUN)[0]


def files() -> list[str]:
    """Return what is installed, in that order."""
    text = (SOURCE / "install.sql").read_text("utf-8")
    return re.findall(r"^:r (?!\.\./)(\S+)$", text, re.MULTILINE)


def procedure(file: str) -> str | None:
    """Return the name of the procedure that a file of sql/sqlserver makes, without its schema."""
    created = _PROCEDURE.search(text_of(file))
    return created[1] if created else None


def text_of(file: str) -> str:
    """Return the text of a file of sql/sqlserver."""
    return (SOURCE / file).read_text("utf-8")
