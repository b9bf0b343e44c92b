"""Fixtures: a test that uses `server` runs on every chosen server."""

import contextlib
import re
import uuid
from collections.abc import Callable, Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rowq.tools.migrate import migrate
from tests import dice
from tests.engines.base import REMEDIES, TO_RUN, Connection, Server, Unavailable, url_variable
from tests.engines.leftovers import drop_queues
from tests.engines.logs import LOGS
from tests.engines.provide import PROVIDERS, REQUIRED_VARIABLE, SERVERS, Servers, required
from tests.engines.sqlserver.babelfish_faults import fault_of
from tests.run.selection import favored_by, is_selected, may_select, newest

ENGINE_ONLY = re.compile(
    r"/(?:tests/(?:engine_only|security)|sql)/(postgres|mysql|sqlserver|oracle)/"
)
# DDL and catalogs differ: the other engines' migration tests are in engine_only.
MIGRATIONS = re.compile(r"/tests/migrations/(?!test_yoyo)")
# These need to know which session waits for which.
INTERLEAVINGS = re.compile(r"/tests/interleavings/")
# These kill a private server, whose version does not matter.
ONE_OF_EACH = re.compile(r"/tests/chaos/")
# These use random numbers.
DICED = re.compile(r"/tests/(?:chaos/|concurrency/|contract/test_hostile|client/test_half_open)")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --engine."""
    parser.addoption(
        "--engine",
        metavar="NAMES",
        help="comma-separated servers to test on, such as postgres18,mariadb",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Find the servers without starting them."""
    try:
        servers = Servers()
    except Unavailable as reason:
        raise pytest.UsageError(f"cannot use the server URL: {reason}") from None
    config.stash[SERVERS] = servers
    unknown = [word for word in {*_words(config), *required()} if not servers.named(word)]
    if unknown:
        raise pytest.UsageError(
            f"unknown server {', '.join(sorted(unknown))}; use one of {', '.join(servers.names)}"
        )


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the servers."""
    if servers := config.stash.get(SERVERS, None):
        servers.close()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return the seed, the available servers, and why others are not available."""
    return [dice.AGAIN, *config.stash[SERVERS].outlook]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files without a selected test."""
    path = collection_path
    if path.suffix != ".py" or not path.is_relative_to(config.rootpath):
        return None
    nodeid = path.relative_to(config.rootpath).as_posix()
    selection = config.getoption("--selection")
    return None if may_select(selection, nodeid, is_favored=True) else True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that uses a server on each selected server."""
    if "server" in metafunc.fixturenames:
        names = chosen(metafunc.config)
        path = metafunc.definition.path.as_posix()
        only = _only_engine(path)
        if only:
            servers = metafunc.config.stash[SERVERS]
            names = [name for name in names if servers.engine_of(name) == only]
        if ONE_OF_EACH.search(path):
            names = sorted(newest(names))
        selection, favored = _selection(metafunc.config)
        # If none is wanted, keep one: the test is deselected below.
        names = [
            name
            for name in names
            if may_select(selection, metafunc.definition.nodeid, is_favored=name in favored)
        ] or names[:1]
        values = [pytest.param(name, id=name) for name in names]
        if not values:
            reason = f"no server of {only or 'any engine'} is chosen{TO_RUN}{_remedy(only)}"
            values = [pytest.param("", id="none", marks=pytest.mark.skip(reason=reason))]
        metafunc.parametrize("server", values, indirect=True, scope="session")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that are not in the run's selection."""
    is_wanted = _wanted(config)
    wanted = [item for item in items if is_wanted(item, server_of(item))]
    if len(wanted) < len(items):
        kept = set(wanted)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = wanted


def _wanted(config: pytest.Config) -> Callable[[pytest.Item, str | None], bool]:
    """Return a function: whether the run's selection includes a test on a server."""
    selection, favored = _selection(config)
    return lambda item, server: is_selected(
        selection, item.nodeid, server, favored, item.get_closest_marker("slow")
    )


def _selection(config: pytest.Config) -> tuple[str, set[str]]:
    """Return the run's selection and the servers on which it runs all folders."""
    selection, given = config.getoption("--selection"), config.stash[SERVERS].given
    return selection, favored_by(selection, chosen(config), given, is_asked=bool(_words(config)))


def _only_engine(path: str) -> str | None:
    """Return the engine that a file tests, None for all."""
    if MIGRATIONS.search(path):
        return "postgres"
    found = ENGINE_ONLY.search(path)
    return found[1] if found else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Store the end of the servers' logs."""
    LOGS.begin()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    """Drop the queues that a file's tests have left in the shared database."""
    yield
    name, servers = server_of(item), item.config.stash[SERVERS]
    is_last = nextitem is not None and (nextitem.path, server_of(nextitem)) != (item.path, name)
    if name in servers.migrated and is_last:
        drop_queues(servers.get(name), servers.migrated[name])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the seed, logs and deadlocks to the report of a failed test."""
    report = yield
    if report.failed:
        report.sections.extend(LOGS.sections())
    if report.failed and DICED.search(item.path.as_posix()):
        report.sections.append(("repeat with the same seed", dice.AGAIN))
    server: Any = getattr(item, "funcargs", {}).get("server")
    if report.failed and hasattr(server, "deadlocks_since"):
        began_at = datetime.fromtimestamp(call.start, UTC)
        with contextlib.suppress(Exception):
            for graph in server.deadlocks_since(began_at):
                report.sections.append((f"deadlock on {server.name}", graph))
    return report


def pytest_itemcollected(item: pytest.Item) -> None:
    """Record the server of a test, for the summary."""
    if name := server_of(item):
        item.user_properties.append(("server", name))
        if name.startswith("babelfish") and (fault := fault_of(item.nodeid)):
            words = f"{name}: {fault.what}"
            item.add_marker(pytest.mark.xfail(reason=words, strict=fault.always))


def chosen(config: pytest.Config) -> list[str]:
    """Return the servers of a run: those of --engine, or all available ones."""
    servers = config.stash[SERVERS]
    words = _words(config)
    if not words:
        return [*servers.at_hand, *sorted(servers.required - set(servers.at_hand))]
    return list(dict.fromkeys(name for word in words for name in servers.named(word)))


def _remedy(engine: str | None) -> str:
    """Return the options that choose a server of an engine."""
    products = [provider.product for provider in PROVIDERS if engine in {None, provider.engine}]
    variables = " or ".join(f"{url_variable(product)}=URL" for product in products)
    return f"--engine {' or '.join(products)}, with Docker or {variables}"


def server_of(item: pytest.Item) -> str | None:
    """Return the name of a test's server, or None."""
    call = getattr(item, "callspec", None)
    return call.params.get("server") or None if call is not None else None


def _words(config: pytest.Config) -> list[str]:
    option = config.getoption("--engine")
    return option.split(",") if option else []


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Server:
    """Return a running server; skip or fail the test if there is none."""
    name = request.param
    try:
        return request.config.stash[SERVERS].get(name)
    except Unavailable as reason:
        if name in request.config.stash[SERVERS].required:
            pytest.fail(f"{name} is required by {REQUIRED_VARIABLE} and not available: {reason}")
        pytest.skip(f"{name}: {reason}{TO_RUN}see tests/README.md, Which server")


@pytest.fixture(autouse=True)
def _capabilities(request: pytest.FixtureRequest) -> None:
    """Skip tests that need a capability which the server lacks."""
    needed = {name for mark in request.node.iter_markers("requires") for name in mark.args}
    if INTERLEAVINGS.search(request.path.as_posix()) and "server" in request.fixturenames:
        needed.add("waits")
    if needed:
        server: Server = request.getfixturevalue("server")
        if missing := needed - server.capabilities:
            lacks = f"{server.name} lacks {', '.join(sorted(missing))}"
            pytest.skip(f"{lacks}{TO_RUN}{', '.join(REMEDIES[name] for name in sorted(missing))}")


@pytest.fixture(scope="session")
def database_url(request: pytest.FixtureRequest, server: Server) -> str:
    """Return the URL of a database with rowq that all tests on the server share."""
    migrated = request.config.stash[SERVERS].migrated
    if server.name not in migrated:
        url = server.fresh_database()
        migrate(url)
        migrated[server.name] = url
    return migrated[server.name]


@pytest.fixture
def empty_database(server: Server) -> Iterator[str]:
    """Return the URL of an empty database for one test."""
    try:
        url = server.fresh_database()
    except Unavailable as reason:
        pytest.skip(f"{server.name}: {reason}{TO_RUN}a private server, or --engine postgres18")
    yield url
    server.drop_database(url)


@pytest.fixture
def connect(server: Server, database_url: str) -> Iterator[Callable[..., Connection]]:
    """Return a function that opens a session, in autocommit by default."""
    with contextlib.ExitStack() as opened:

        def open_session(*, autocommit: bool = True) -> Connection:
            session = server.connect(database_url, autocommit=autocommit)
            opened.callback(_close, session)
            return session

        yield open_session


def _close(session: Connection) -> None:
    """Close a session if it is open: some drivers refuse to close twice."""
    if not getattr(session, "closed", False):
        session.close()


@pytest.fixture
def connection(connect: Callable[..., Connection]) -> Connection:
    """Return a session in autocommit."""
    return connect()


@pytest.fixture
def queue_name(request: pytest.FixtureRequest) -> str:
    """Return a unique queue name that contains the test's name."""
    readable = re.sub(r"\W+", "_", request.node.name.removeprefix("test_"))
    return f"{readable[:60]}_{uuid.uuid4().hex[:8]}"
