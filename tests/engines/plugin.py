"""The fixtures and the report: every test that asks for a server runs on every server."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from rowq.migrate import migrate
from tests.engines.base import Connection, Server, Unavailable
from tests.engines.provide import REQUIRED_VARIABLE, Servers, required

SERVERS = pytest.StashKey[Servers]()
OUTCOMES = ("passed", "failed", "error", "skipped")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --engine."""
    parser.addoption(
        "--engine",
        metavar="NAMES",
        help="comma-separated servers to test on, such as postgres18,postgres15 (default: all)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Look which servers there are; none is started yet."""
    try:
        servers = Servers()
    except Unavailable as reason:
        raise pytest.UsageError(f"the given URL cannot be used: {reason}") from None
    config.stash[SERVERS] = servers
    unknown = (set(_chosen(config)) | required()) - set(servers.names)
    if unknown:
        raise pytest.UsageError(
            f"no such server: {', '.join(sorted(unknown))}; there are {', '.join(servers.names)}"
        )


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the servers."""
    if servers := config.stash.get(SERVERS, None):
        servers.close()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which servers are at hand, and why others are not."""
    return config.stash[SERVERS].outlook


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that uses a server once on each chosen server."""
    if "server" in metafunc.fixturenames:
        names = _chosen(metafunc.config)
        metafunc.parametrize("server", names, ids=names, indirect=True, scope="session")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Note the server of a test, to count by it."""
    call = getattr(item, "callspec", None)
    if call is not None and "server" in call.params:
        item.user_properties.append(("server", call.params["server"]))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say which server ran how, and how many tests."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in _chosen(config)}
    for outcome in OUTCOMES:
        for report in terminalreporter.stats.get(outcome, []):
            for key, name in getattr(report, "user_properties", []):
                if key == "server":
                    counts[name][outcome] += 1
    servers = config.stash[SERVERS]
    terminalreporter.section("servers")
    for name, count in counts.items():
        tests = ", ".join(f"{count[word]} {word}" for word in OUTCOMES if count[word])
        how = "did not start" if tests else "not needed"
        if name in servers.refused:
            how = f"not run: {servers.refused[name]}"
        elif name in servers.running:
            how = servers.running[name].how
        terminalreporter.line(f"{name}: {how}" + (f": {tests}" if tests else ""))


def _chosen(config: pytest.Config) -> list[str]:
    option = config.getoption("--engine")
    return option.split(",") if option else config.stash[SERVERS].names


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Server:
    """Return a running server; the test is skipped, or fails, where there is none."""
    name = request.param
    try:
        return request.config.stash[SERVERS].get(name)
    except Unavailable as reason:
        if name in required():
            pytest.fail(f"{name} is in {REQUIRED_VARIABLE} and is not available: {reason}")
        pytest.skip(f"{name}: {reason}")


@pytest.fixture(autouse=True)
def _capabilities(request: pytest.FixtureRequest) -> None:
    """Skip what a server cannot do, visibly."""
    needed = {name for mark in request.node.iter_markers("requires") for name in mark.args}
    if needed:
        server: Server = request.getfixturevalue("server")
        if missing := needed - server.capabilities:
            pytest.skip(f"{server.name} ({server.how}) lacks: {', '.join(sorted(missing))}")


@pytest.fixture(scope="session")
def _migrated(server: Server) -> str:
    """Return the URL of the one migrated database of a server."""
    url = server.fresh_database()
    migrate(url)
    return url


@pytest.fixture
def database_url(_migrated: str) -> str:
    """Return the URL of a database with rowq in it, shared by all tests on the server."""
    return _migrated


@pytest.fixture
def empty_database(server: Server) -> Iterator[str]:
    """Return the URL of a database of this test's own, without rowq in it."""
    url = server.fresh_database()
    yield url
    server.drop_database(url)


@pytest.fixture
def connect(server: Server, database_url: str) -> Iterator[Callable[..., Connection]]:
    """Return a function that opens one more session, in autocommit unless told otherwise."""
    with contextlib.ExitStack() as opened:

        def open_session(*, autocommit: bool = True) -> Connection:
            session = server.connect(database_url, autocommit=autocommit)
            opened.callback(session.close)
            return session

        yield open_session


@pytest.fixture
def connection(connect: Callable[..., Connection]) -> Connection:
    """Return a session in autocommit."""
    return connect()


@pytest.fixture
def queue_name(request: pytest.FixtureRequest) -> str:
    """Return a queue name that no other test uses, with the test's name in it."""
    readable = re.sub(r"\W+", "_", request.node.name.removeprefix("test_"))
    return f"{readable[:60]}_{uuid.uuid4().hex[:8]}"
