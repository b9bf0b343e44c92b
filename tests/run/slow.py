"""Marks tests as slow by where they stand; see selection.py for what a mark means.

A mark at a test, or in its file as `pytestmark`, goes before.
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
"""Files that `make test` runs on each of its servers, of directories that are slow."""

SLOW = {
    "sql/postgres/addons": _slow("about an add-on"),
    "tests/benchmarks": _slow("measures", ci=False),
    "tests/celery": _slow("about the transport, which PostgreSQL has run", on="mariadb"),
    "tests/chaos": _slow("kills sessions, programs, servers and networks"),
    "tests/cli": _slow("details of a command"),
    "tests/cli/test_migrate.py": _slow("installs again and again", ci="mariadb"),
    **dict.fromkeys(
        _files("tests/cli", "enqueue main queues secrets stats"),
        _slow("about the command, which PostgreSQL has run", on="mariadb"),
    ),
    "tests/client": _slow("about the client, which PostgreSQL has run", on="mariadb"),
    **dict.fromkeys(
        _files(
            "tests/client",
            "connection_loss lent_connections uncommitted worker worker_outcomes",
        ),
        _slow("about the client, which PostgreSQL has run", on="mariadb", ci="mariadb"),
    ),
    "tests/client/test_half_open.py": _slow("waits for time limits"),
    "tests/demo": _slow("runs the demo's orders"),
    "tests/docs": _slow("executes pages", on="mariadb"),
    "tests/engine_only/mysql": _slow("what only MariaDB and MySQL do", ci="mariadb"),
    "tests/engine_only/postgres": _slow("what only PostgreSQL does"),
    "tests/examples": _slow("runs programs in other languages, which need compilers"),
    "tests/frameworks": _slow("about the framework, which PostgreSQL has run", on="mariadb"),
    **dict.fromkeys(
        _files(
            "tests/interleavings",
            "dedup expired_messages expiry groups history housekeeping late_committer limits "
            "predecessors results schedules topics",
        ),
        _slow("about a feature, whose orders PostgreSQL has run", on="mariadb", ci="mariadb"),
    ),
    "tests/metrics": _slow("about the exporter, which PostgreSQL has run", on="mariadb"),
    "tests/migrations": _slow("installs releases in databases of its own"),
    "tests/release": _slow("builds what a release has"),
    "tests/security/postgres": _slow("an attack by a database of its own"),
    **dict.fromkeys(
        _files("tests/static", "compatible dist for_tools frozen release"),
        _slow("makes releases"),
    ),
    "tests/testing": _slow("about rowq.contrib.testing, which PostgreSQL has run", on="mariadb"),
    "tests/web": _slow("about the page, which PostgreSQL has run", on="mariadb"),
}
"""The marks of directories, and of files that differ from their directory."""


def mark_slow(item: pytest.Item) -> None:
    """Give a test the mark of its file, or else of its directory, if it has none of its own."""
    mark = mark_of(item.nodeid.partition("::")[0])
    if mark and not item.get_closest_marker("slow"):
        item.add_marker(mark)


def mark_of(file: str) -> pytest.MarkDecorator | None:
    """Return the mark of a file, by the closest place that is listed; None for one of CORE."""
    places = (file, *map(str, PurePosixPath(file).parents))
    return None if file in CORE else next((SLOW[one] for one in places if one in SLOW), None)
