"""Options, worker processes and summary of a test run."""

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
"""The key of a worker process's server descriptions."""
SUMMARY = pytest.StashKey[Summary]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --selection."""
    parser.addoption(
        "--selection",
        choices=SELECTIONS,
        help="tests to run, see tests/run/selection.py; default: test, or the named tests",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set the selection before worker processes copy the options."""
    # Fixtures close connections inside transactions.
    config.addinivalue_line("filterwarnings", "ignore::rowq.UncommittedWarning")
    # A background job ignores SIGINT, and so would all programs that the tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.option.selection = selection_of(config)
    config.option.loadscopereorder = False
    config.stash[SUMMARY] = Summary()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the number of worker processes for `--numprocesses auto`."""
    del config
    return workers_for(processors())


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileAndServerScheduling:
    """Return the scheduler of tests."""
    return FileAndServerScheduling(config, log, config.stash[SERVERS])


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    """Skip a test file with missing imports."""
    return TestFile.from_parent(parent, path=module_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    """Skip a test if a fixture imports a missing package."""
    yield from _skipping()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Skip a test that imports a missing package."""
    yield from _skipping()


def _skipping() -> Generator[None, None, None]:
    try:
        yield
    except (ImportError, DriverMissing) as error:
        if lack := lack_of(error if isinstance(error, ImportError) else error.__cause__):
            pytest.skip(f"no {lack.name}{TO_RUN}{lack.remedy}")
        raise


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test as slow by its path."""
    mark_slow(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run long files first if workers share the tests."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(FIRST))


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable(config: pytest.Config) -> Generator[None, Any, Any]:
    """Make a report printable, whatever a test has written."""
    data = yield
    return printable(data) if hasattr(config, "workeroutput") else data


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Record this process's servers, and send them to the main process."""
    config = session.config
    servers, summary = config.stash[SERVERS], config.stash[SUMMARY]
    used = {name: server.how for name, server in servers.running.items()}
    summary.record(used, servers.refused)
    if hasattr(config, "workeroutput"):
        config.workeroutput[HOW] = [used, servers.refused]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Record the servers of a worker process."""
    if servers := getattr(node, "workeroutput", {}).get(HOW):
        node.config.stash[SUMMARY].record(*servers)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the tests per server, the skips and their remedies."""
    terminalreporter.section("what ran")
    stats = terminalreporter.stats
    for line in config.stash[SUMMARY].lines(stats, config.getoption("--selection")):
        terminalreporter.line(line)
