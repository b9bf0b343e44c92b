"""Errors for an account without the right to call a routine name the role and its grant."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from rowq.engines.mysql.url import connection_parameters
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.metrics import Collector
from tests.cli.conftest import run_app
from tests.engines.base import Connection
from tests.engines.mysql.accounts import open_account


def test_command_names_the_missing_role_and_its_grant(
    connection: Connection, database_url: str
) -> None:
    for roles in ((), ("rowq_producer",)):
        with open_account(connection, database_url, *roles) as opened:
            session = opened()
            assert isinstance(session.user, bytes)
            assert isinstance(session.password, bytes)
            name, password = session.user.decode(), session.password.decode()
            session.close()
            parts = urlsplit(database_url)
            host = parts.netloc.rpartition("@")[2]
            done = run_app(
                *("dead", "list", "orders"),
                url=f"{parts.scheme}://{name}:{quote(password)}@{host}/?{parts.query}",
            )
        assert done.code == ExitCode.REFUSED
        assert "needs role rowq_monitor or rowq_admin: a DBA can run" in done.err
        assert f"\"grant rowq_monitor to '{name}'@'%';\"" in done.err
        assert "default role" in done.err
        assert password not in done.err
    assert connection_parameters(database_url)["user"] != name


def test_metrics_require_the_monitor_role(connection: Connection, database_url: str) -> None:
    for role, is_allowed in (("rowq_consumer", False), ("rowq_monitor", True)):
        with open_account(connection, database_url, role) as opened:
            collector = Collector(opened)
            sample = collector.sample()
        assert (sample.error is None) is is_allowed
        assert ("needs role rowq_monitor" in str(collector.last_error)) is not is_allowed
