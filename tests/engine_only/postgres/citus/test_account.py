"""The role rowq_citus: what it must not have, and how it logs in from node to node."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import psycopg
import pytest

from rowq.tools.engines.postgres.citus.install import install, remove
from rowq.tools.engines.postgres.citus.nodes import nodes_of
from rowq.tools.engines.postgres.citus.scripts import CARRIER
from rowq.tools.engines.postgres.citus.status import cluster_status
from tests.engine_only.postgres.citus.helpers import (
    BY_ITSELF,
    last,
    on_each,
    on_last,
    refuses_and_changes_nothing,
)
from tests.engines.base import Connection, wait_until
from tests.engines.postgres.citus import on_node
from tests.helpers.releases import NEWEST

WRONG_ROLE = {
    "alter role rowq_citus createrole": "may do more than carry calls",
    "alter role rowq_citus replication": "may do more than carry calls",
    "do $$ begin execute format("
    "'grant create on database %I to rowq_citus', current_database()); end $$": (
        "may create schemas"
    ),
    "grant pg_read_all_data to rowq_citus": "is a member of pg_read_all_data",
    "grant rowq_citus to rowq_monitor": "rowq_monitor can act as it",
    "create table public.kept (id integer); alter table public.kept owner to rowq_citus": (
        "owns table public.kept"
    ),
    "create table public.kept (id integer); grant select on public.kept to rowq_citus": (
        "has rights on table public.kept"
    ),
}
UNDO = """
    alter role rowq_citus nocreaterole noreplication;
    revoke pg_read_all_data from rowq_citus;
    revoke rowq_citus from rowq_monitor;
    drop table if exists public.kept;
    do $$ begin
        execute format('revoke create on database %I from rowq_citus', current_database());
    end $$
    """


HBA = "select setting from pg_settings where name = 'hba_file'"


def write(session: Connection, path: str, text: str) -> None:
    """Write a file of the server."""
    made = "select lo_from_bytea(0, convert_to(%s, 'utf8'))"
    (number,) = session.execute(made, [text]).fetchone() or (0,)
    session.execute("select lo_export(%s, %s)", [number, path])
    session.execute("select lo_unlink(%s)", [number])


def is_asked(url: str) -> bool:
    """Return whether a server asks rowq_citus for its password."""
    try:
        psycopg.connect(url, user=CARRIER).close()
    except psycopg.OperationalError as error:
        return "no password" in str(error)
    return False


def calls_from_each(url: str, texts: list[str]) -> Iterator[str]:
    """Run statements on each node, and yield why one was refused."""
    for node in nodes_of(url):
        try:
            with psycopg.connect(on_node(url, node), autocommit=True) as caller:
                for text in texts:
                    caller.execute(text)
        except psycopg.Error as refusal:
            yield str(refusal)


@contextmanager
def asks_for_passwords(session: Connection) -> Iterator[None]:
    """Let a node ask rowq_citus for its password during a block."""
    (path,) = session.execute(HBA).fetchone() or ("",)
    (before,) = session.execute("select pg_read_file(%s)", [path]).fetchone() or ("",)
    rule = "host all rowq_citus all scram-sha-256\n"
    write(session, path, f"{rule}{before}")
    session.execute("select pg_reload_conf()")
    try:
        yield
    finally:
        write(session, path, before)
        session.execute("select pg_reload_conf()")


def test_a_role_that_may_do_more_is_refused(empty_cluster: str) -> None:
    install(empty_cluster)
    with on_last(empty_cluster) as session:
        for statements, why in WRONG_ROLE.items():
            try:
                session.execute(statements)
                with refuses_and_changes_nothing(empty_cluster, "RQ803") as said:
                    install(empty_cluster)
                assert why in said()
                assert last(empty_cluster).name in said()
                assert "A DBA must run: " in said()
            finally:
                session.execute(UNDO)


def test_a_password_that_somebody_else_has_set_is_refused(empty_cluster: str) -> None:
    install(empty_cluster)
    remove(empty_cluster)
    with on_last(empty_cluster) as session:
        is_used = (
            "select 1 from pg_shdepend where refobjid = 'rowq_citus'::regrole and deptype = 'o'"
        )
        if session.execute(is_used).fetchone():
            pytest.skip("another database of this server carries calls; to run it: this file alone")
        can_log_in = "select rolcanlogin from pg_roles where rolname = 'rowq_citus'"
        assert session.execute(can_log_in).fetchone() == (False,)
        try:
            session.execute("alter role rowq_citus login password 'known'")
            with refuses_and_changes_nothing(empty_cluster, "RQ803") as said:
                install(empty_cluster)
            assert "with a password" in said()
        finally:
            session.execute("alter role rowq_citus password null")
    install(empty_cluster)
    # Once calls are carried a password is the administrator's, who may need it between nodes.
    with on_last(empty_cluster) as session:
        session.execute("alter role rowq_citus password 'ours'")
        try:
            install(empty_cluster)
        finally:
            session.execute("alter role rowq_citus password null")


def test_calls_between_nodes_need_the_password_of_the_role(empty_cluster: str) -> None:
    install(empty_cluster)
    texts = [f"select rowq.create_queue('orders_{number}')" for number in range(9)]
    with ExitStack() as stack:
        sessions = dict(on_each(empty_cluster, stack))
        for session in sessions.values():
            session.execute(BY_ITSELF)
            session.execute("set password_encryption = 'scram-sha-256'")
            session.execute("alter role rowq_citus password 'between'")
            stack.callback(session.execute, "alter role rowq_citus password null")
            stack.enter_context(asks_for_passwords(session))
        place = on_node(empty_cluster, last(empty_cluster))
        wait_until(partial(is_asked, place), "rowq_citus is asked for its password", 10)
        why = list(calls_from_each(empty_cluster, texts))
        assert len(why) == len(sessions)
        assert all("password" in text for text in why)
        for session in sessions.values():
            session.execute(
                "insert into pg_dist_authinfo (nodeid, rolename, authinfo)"
                " values (0, 'rowq_citus', 'password=between')"
            )
        assert [one.installed for one in install(empty_cluster)] == [NEWEST] * len(sessions)
        assert list(calls_from_each(empty_cluster, texts)) == []
        assert sum(one.queues for one in cluster_status(empty_cluster)) == len(texts)
