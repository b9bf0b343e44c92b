"""Mark tests as slow by their path; see selection.py for the meaning of marks.

A mark of a test, or `pytestmark` in its file, takes precedence.
"""

from pathlib import PurePosixPath

import pytest

_slow = pytest.mark.slow


def _files(directory: str, names: str) -> tuple[str, ...]:
    return tuple(f"{directory}/test_{name}.py" for name in names.split())


CORE = {
    *_files("tests/client", "error_classes queue savepoint"),
    *_files(
        "tests/engine_only/mysql",
        "connections denied plans privileges pymysql snapshot_isolation transactions",
    ),
    *_files(
        "tests/engine_only/postgres",
        "connections denied groups json_bodies limits listen plans psycopg",
    ),
    *_files("tests/migrations", "rollback status"),
    *_files("tests/security/postgres", "grants one_queue"),
}
"""Files in slow directories that `make test` runs on each of its servers."""

SLOW = {
    "sql/postgres/addons": _slow("about an add-on"),
    "tests/benchmarks": _slow("measures", ci=False),
    "tests/celery": _slow("about the transport, which runs on PostgreSQL", on="mariadb"),
    "tests/chaos": _slow("kills sessions, programs, servers and networks"),
    "tests/cli": _slow("details of a command"),
    "tests/cli/test_migrate.py": _slow("installs again and again", ci="mariadb"),
    **dict.fromkeys(
        _files("tests/cli", "enqueue main queues secrets stats"),
        _slow("about the command, which runs on PostgreSQL", on="mariadb"),
    ),
    "tests/client": _slow("about the client, which runs on PostgreSQL", on="mariadb"),
    **dict.fromkeys(
        _files(
            "tests/client", "connection_loss lent_connections uncommitted worker worker_outcomes"
        ),
        _slow("about the client, which runs on PostgreSQL", on="mariadb", ci="mariadb"),
    ),
    "tests/client/test_half_open.py": _slow("waits for time limits"),
    "tests/demo": _slow("runs the demo's orders"),
    "tests/docs": _slow("executes pages", on="mariadb"),
    "tests/engine_only/mysql": _slow("specific to MariaDB and MySQL", ci="mariadb"),
    "tests/engine_only/postgres": _slow("specific to PostgreSQL"),
    "tests/examples": _slow("runs programs in other languages, which need compilers"),
    "tests/frameworks": _slow("about the framework, which runs on PostgreSQL", on="mariadb"),
    **dict.fromkeys(
        _files(
            "tests/interleavings",
            "dedup expired_messages expiry groups history late_committer limits maintenance "
            "predecessors results schedules topics",
        ),
        _slow("about a feature, whose orders run on PostgreSQL", on="mariadb", ci="mariadb"),
    ),
    "tests/metrics": _slow("about the exporter, which runs on PostgreSQL", on="mariadb"),
    "tests/migrations": _slow("installs releases in private databases"),
    "tests/release": _slow("builds the files of a release"),
    "tests/security/postgres": _slow("attacks in a private database"),
    **dict.fromkeys(
        _files("tests/static", "compatible dist for_tools frozen release"), _slow("makes releases")
    ),
    "tests/testing": _slow("about rowq.contrib.testing, which runs on PostgreSQL", on="mariadb"),
    "tests/web": _slow("about the page, which runs on PostgreSQL", on="mariadb"),
}
"""The marks of directories, and of files with another mark."""


def mark_slow(item: pytest.Item) -> None:
    """Add the mark of its file or directory to a test without one."""
    mark = mark_of(item.nodeid.partition("::")[0])
    if mark and not item.get_closest_marker("slow"):
        item.add_marker(mark)


def mark_of(file: str) -> pytest.MarkDecorator | None:
    """Return the mark of the closest listed path of a file; None for a file of CORE."""
    paths = (file, *map(str, PurePosixPath(file).parents))
    return None if file in CORE else next((SLOW[path] for path in paths if path in SLOW), None)
