"""12 tasks of a new user, done by the site's steps in a fresh clone.

A step is a block of a page. Packages of npm or Debian that a page installs are put beside the
clone; if one is missing, the task is skipped.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.client.proxy import Relay
from tests.docs.transcript import agrees, examples, printed_by, section, tab
from tests.engines.base import Server
from tests.engines.postgres.psql import psql_program
from tests.examples.languages import go, java, php
from tests.helpers.npm import package
from tests.static.sources import ROOT

pytestmark = pytest.mark.slow("follows the written steps in a clone", ci=False)

Part = tuple[str, str, str | None]
"""A page, a heading, and optionally a tab below it."""

INSTALL: Part = ("docs/start.md", "## Install rowq", None)


def _first(title: str) -> list[Part]:
    return [INSTALL, ("docs/start.md", "## First message", title)]


TASKS: dict[str, list[Part]] = {
    "first message in psql": _first("psql"),
    "first message in Python": _first("Python"),
    "first message in Node.js": _first("Node.js"),
    "first message in Java": _first("Java"),
    "first message in Go": _first("Go"),
    "first message in PHP": _first("PHP"),
    "first message in a shell": _first("Shell"),
    "a worker": [INSTALL, ("docs/start.md", "## A worker", None)],
    "own transaction, in psql": [INSTALL, ("docs/start.md", "## In your own transaction", None)],
    "own transaction, in Python": [
        INSTALL,
        ("docs/python/transactions.md", "## psycopg and other drivers", None),
    ],
    "Flyway": [("docs/install.md", "## Flyway", None)],
    "find and reset dead": [INSTALL, ("docs/operate.md", "## Find and reset dead messages", None)],
    "who holds a message": [INSTALL, ("docs/operate.md", "## See who holds a message", None)],
    "alert on age": [
        INSTALL,
        ("docs/alerts.md", "## Alert on the age of the oldest message", None),
    ],
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Clone the last commit."""
    if not (ROOT / ".git").exists():
        pytest.skip("not in a clone; to run it: git clone the repository")
    target = tmp_path / "rowq"
    command = ["git", "clone", "--quiet", "--shared", str(ROOT), str(target)]
    subprocess.run(command, check=True, timeout=120)
    return target


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    """Return a stack that is closed after the task."""
    with ExitStack() as stack:
        yield stack


def _for_node(_server: Server, _url: str, clone: Path, _closing: ExitStack) -> dict[str, str]:
    (clone / "node_modules").symlink_to(package("pg").parent)
    return {}


def _for_java(server: Server, url: str, _clone: Path, closing: ExitStack) -> dict[str, str]:
    java.need_java(server.engine)
    relay = Relay(url)
    closing.callback(relay.close)
    return {"DATABASE_URL": java.jdbc_url(server.engine, relay.url)}


def _for_go(_server: Server, _url: str, clone: Path, _closing: ExitStack) -> dict[str, str]:
    go.need_go()
    return go.environment(clone.parent / "cache")


def _for_php(server: Server, url: str, clone: Path, _closing: ExitStack) -> dict[str, str]:
    return dict(php.programs(server, url, clone.parent).environment)


PREPARED: dict[str, Callable[[Server, str, Path, ExitStack], dict[str, str]]] = {
    "Node.js": _for_node,
    "Java": _for_java,
    "Go": _for_go,
    "PHP": _for_php,
}
"""Functions that replace a tab's installation steps, and return its environment."""


@pytest.mark.timeout(300)
@pytest.mark.requires("psql")
@pytest.mark.parametrize("task", TASKS)
def test_written_steps_complete_the_task(
    task: str, server: Server, empty_database: str, clone: Path, closing: ExitStack
) -> None:
    programs = [Path(sys.executable).parent, Path(psql_program(server)).parent]
    environment = {
        **os.environ,
        "COLUMNS": "100",
        "DATABASE_URL": empty_database,
        "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
        "PYTHONPATH": str(clone / "python_client"),
        "ROWQ_URL": empty_database,
    }
    for page, heading, title in TASKS[task]:
        text = section((clone / page).read_text(encoding="utf-8"), heading)
        if title is not None:
            text = go.at_hand(tab(text, title))
            prepare = PREPARED.get(title)
            if prepare is not None:
                environment |= prepare(server, empty_database, clone, closing)
        todo = list(examples(text))
        assert todo, (page, heading)
        for example in todo:
            printed = printed_by(example, environment, clone)
            assert agrees(example.output, printed), f"{example.shown}\nprinted:\n{printed}"


def test_every_first_message_tab_is_a_task() -> None:
    text = section((ROOT / "docs" / "start.md").read_text(encoding="utf-8"), "## First message")
    titles = [line.partition("} ")[2] for line in text.splitlines() if line[:7] == ":::{tab"]
    tasks = [parts[-1] for parts in TASKS.values()]
    assert titles == [title for _, heading, title in tasks if heading == "## First message"]
