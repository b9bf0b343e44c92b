"""A run as a whole: which tests it has, which processes run them, and what its end says."""

import gc
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from rowq.errors import DriverMissing
from tests.engines.base import TO_RUN
from tests.engines.provide import SERVERS
from tests.run.lacking import TestFile, lack_of
from tests.run.selection import SELECTIONS, selection_of
from tests.run.slow import mark_slow
from tests.run.summary import Summary
from tests.run.workers import FIRST, FileAndServerScheduling, printable, processors, workers_for

HOW = "servers"
"""Where a worker process puts how its servers run, for the process that started it."""
SUMMARY = pytest.StashKey[Summary]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --selection."""
    parser.addoption(
        "--selection",
        choices=SELECTIONS,
        help="which tests to run, see tests/run/selection.py (default: test where none are named)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Settle the selection before worker processes take over the options."""
    # Fixtures close connections in the middle of transactions.
    config.addinivalue_line("filterwarnings", "ignore::rowq.UncommittedWarning")
    # A script's background job ignores Ctrl-C, and so would every program that the tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.option.selection = selection_of(config)
    config.option.loadscopereorder = False
    config.stash[SUMMARY] = Summary()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return how many worker processes `--numprocesses auto` means."""
    del config
    return workers_for(processors())


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileAndServerScheduling:
    """Return what shares out the tests."""
    return FileAndServerScheduling(config, log, config.stash[SERVERS])


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    """Skip a file of tests whose imports this machine lacks, with the reason."""
    return TestFile.from_parent(parent, path=module_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    """Skip a test one of whose fixtures lacks a package at the point where it imports it."""
    yield from _skipping()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Skip a test that lacks a package at the point where it imports it."""
    yield from _skipping()


def _skipping() -> Generator[None, None, None]:
    try:
        yield
    except (ImportError, DriverMissing) as error:
        if lack := lack_of(error if isinstance(error, ImportError) else error.__cause__):
            pytest.skip(f"no {lack.name}{TO_RUN}{lack.remedy}")
        raise


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test as slow by where it stands."""
    mark_slow(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put what takes long first, where workers share the tests."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(FIRST))


def pytest_collection_finish() -> None:
    """Keep thousands of tests out of every round of the garbage collector: they stay to the end."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable(config: pytest.Config) -> Generator[None, Any, Any]:
    """Let a report reach the process that prints it, whatever a test has written."""
    data = yield
    return printable(data) if hasattr(config, "workeroutput") else data


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Note how this process's servers ran, and tell the process that started it."""
    config = session.config
    servers, summary = config.stash[SERVERS], config.stash[SUMMARY]
    used = {name: server.how for name, server in servers.running.items()}
    summary.note(used, servers.refused)
    if hasattr(config, "workeroutput"):
        config.workeroutput[HOW] = [used, servers.refused]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hear from a worker process how its servers ran."""
    if told := getattr(node, "workeroutput", {}).get(HOW):
        node.config.stash[SUMMARY].note(*told)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say on one screen what ran where, what was skipped, and how to run that, too."""
    terminalreporter.section("what ran")
    stats = terminalreporter.stats
    for line in config.stash[SUMMARY].lines(stats, config.getoption("--selection")):
        terminalreporter.line(line)
