"""Errors for an account without the right to call a routine name the role and its grant."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from urllib.parse import quote, urlencode

import psycopg
import pytest
from psycopg import sql

import rowq.tools.metrics
from rowq.tools.console.exit_codes import ExitCode
from tests.cli.conftest import run_app
from tests.engines.base import Connection

NAMES = ("rowq_test_account", 'Rowq "test" account')


@pytest.fixture(params=NAMES)
def account(request: pytest.FixtureRequest, connection: Connection) -> Iterator[str]:
    """Return the name of a role that may call the routines of producers."""
    role, password = sql.Identifier(request.param), secrets.token_hex(8)
    connection.execute(sql.SQL("create role {} login password {}").format(role, password))
    connection.execute(sql.SQL("grant rowq_producer to {}").format(role))
    request.node.stash_password = password
    yield request.param
    connection.execute(sql.SQL("drop role {}").format(role))


@pytest.fixture
def url(request: pytest.FixtureRequest, account: str, database_url: str) -> str:
    given = psycopg.conninfo.conninfo_to_dict(database_url)
    more = {"user": account, "password": request.node.stash_password}
    return f"postgresql:///?{urlencode({**given, **more}, quote_via=quote)}"


def remedy(account: str, role: str = "rowq_monitor") -> str:
    quoted = '"' + account.replace('"', '""') + '"' if " " in account else account
    return f'a DBA can run "grant {role} to {quoted};"'


def test_command_names_the_missing_role_and_its_grant(url: str, account: str) -> None:
    done = run_app("dead", "list", "orders", url=url)
    assert done.code == ExitCode.REFUSED
    assert done.err == (
        "rowq: permission denied for function list_dead: needs role rowq_monitor or rowq_admin:"
        f" {remedy(account)}\n"
    )


def test_metrics_require_the_monitor_role(connection: Connection, url: str, account: str) -> None:
    denied = run_app("metrics", "--once", url=url)
    assert denied.code == ExitCode.REFUSED
    assert "rowq_up 0.0" in denied.out
    assert remedy(account) in denied.err
    collector = rowq.tools.metrics.Collector(url, cache_seconds=0)
    assert collector.sample().error is not None
    assert remedy(account) in str(collector.last_error)
    connection.execute(sql.SQL("grant rowq_monitor to {}").format(sql.Identifier(account)))
    allowed = run_app("metrics", "--once", url=url)
    assert allowed.code == 0
    assert "rowq_up 1.0" in allowed.out
    assert collector.sample().error is None


def test_account_without_any_role_gets_the_grant(
    connection: Connection, url: str, account: str
) -> None:
    revoke = sql.SQL("revoke rowq_producer from {}")
    connection.execute(revoke.format(sql.Identifier(account)))
    done = run_app("enqueue", "orders", "1", url=url)
    assert done.code == ExitCode.REFUSED
    assert "needs role rowq_producer or rowq_admin" in done.err
    assert remedy(account, "rowq_producer") in done.err


def test_worker_without_its_role_fails_with_the_grant(url: str, account: str) -> None:
    done = run_app("work", "orders", "--exec", "true", url=url)
    assert done.code == ExitCode.REFUSED
    assert remedy(account, "rowq_consumer") in done.err
    with pytest.raises(rowq.WorkerFailed, match="needs role rowq_consumer or"):
        rowq.Worker(url, "orders", print, drain=True, maintain_seconds=0).run()


def test_driver_error_has_the_grant_as_a_note(url: str, account: str) -> None:
    async def call() -> None:
        async with rowq.connect_async(url) as queue:
            await queue.list_dead("orders")

    with (
        psycopg.connect(url) as session,
        pytest.raises(psycopg.errors.InsufficientPrivilege) as own,
    ):
        rowq.Queue(session).list_dead("orders")
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as awaited:
        asyncio.run(call())
    for denied in (own, awaited):
        (note,) = denied.value.__notes__
        assert note.endswith(remedy(account))


def test_missing_right_inside_a_routine_adds_no_note(
    connection: Connection, queue_name: str
) -> None:
    """A trigger of the DBA fails; no role of rowq would help."""
    rowq.Queue(connection).create_queue(queue_name)
    with connection.transaction(force_rollback=True):
        connection.execute(
            "create function pg_temp.fail() returns trigger language plpgsql as $$ begin"
            " raise insufficient_privilege; end $$"
        )
        connection.execute(
            "create trigger x before insert on rowq.message execute function pg_temp.fail()"
        )
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as denied:
            rowq.Queue(connection).enqueue(queue_name, 1)
    assert not hasattr(denied.value, "__notes__")
