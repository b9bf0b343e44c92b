"""Fixtures of the tests of the command line."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from typer.testing import CliRunner

import rowq
from rowq.tools.command.main import app


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a command: its exit status and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def row(self) -> dict[str, Any]:
        """The only row."""
        (row,) = self.rows
        return row


Run = Callable[..., Ran]


def run_app(*arguments: object, url: str | None, given: str | bytes | None = None) -> Ran:
    """Run a command in this process with ROWQ_URL and standard input `given`."""
    runner = CliRunner(env={"ROWQ_URL": url, "COLUMNS": "200"})
    result = runner.invoke(app, [str(argument) for argument in arguments], input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def run(database_url: str) -> Run:
    """Return a function that runs a command on the shared database."""

    def on_database(*arguments: object, given: str | bytes | None = None) -> Ran:
        return run_app(*arguments, url=database_url, given=given)

    return on_database


@pytest.fixture
def run_without_database() -> Run:
    """Return a function that runs a command; `url` is the value of ROWQ_URL, if any."""

    def anywhere(*arguments: object, url: str | None = None) -> Ran:
        return run_app(*arguments, url=url)

    return anywhere


@pytest.fixture
def queue(database_url: str) -> Iterator[rowq.Queue]:
    """Return a client on the shared database."""
    with rowq.connect(database_url) as client:
        yield client


@pytest.fixture
def made(queue: rowq.Queue, queue_name: str) -> str:
    """Create a queue and return its name."""
    queue.create_queue(queue_name, backoff_base_seconds=0)
    return queue_name
