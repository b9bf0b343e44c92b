"""A rollback removes everything or names what prevents it."""

import pytest

from rowq.tools import migrate
from tests.engines.base import Connection
from tests.helpers.one_message import leave_message
from tests.helpers.releases import BACK
from tests.migrations.catalog import QUERIES, snapshot


def test_rollback_to_0_and_migrate_restore_everything(
    empty_database: str, session: Connection
) -> None:
    rights = session.execute(QUERIES["default rights"]).fetchall()
    migrate.migrate(empty_database)
    first = snapshot(session)

    assert migrate.rollback(empty_database, to=0).rolled_back == BACK
    assert session.execute("select to_regnamespace('rowq')").fetchone() == (None,)
    assert session.execute(QUERIES["default rights"]).fetchall() == rights

    migrate.migrate(empty_database)
    assert snapshot(session) == first


def test_rollback_of_empty_database_does_nothing(empty_database: str) -> None:
    assert migrate.rollback(empty_database).rolled_back == ()


@pytest.mark.parametrize("state", ["ready", "delayed", "leased", "dead"])
def test_rollback_refuses_to_delete_unfinished_messages(
    state: str, empty_database: str, session: Connection
) -> None:
    migrate.migrate(empty_database, to=1)
    leave_message(empty_database, state)
    before = snapshot(session)

    with pytest.raises(migrate.MessagesLeft, match="RQ805") as refusal:
        migrate.rollback(empty_database)
    assert not refusal.value.retryable
    assert snapshot(session) == before
    assert session.execute("select count(*) from rowq.message").fetchone() == (1,)

    assert migrate.rollback(empty_database, force=True).rolled_back == (1,)


def test_rollback_drops_empty_queues(empty_database: str, session: Connection) -> None:
    migrate.migrate(empty_database)
    session.execute("select rowq.create_queue('orders')")
    session.execute("select rowq.enqueue('orders', 'a')")
    session.execute("select rowq.complete('orders', d.claim_id) from rowq.dequeue_fast('orders') d")
    assert migrate.rollback(empty_database, to=0).rolled_back == BACK


@pytest.mark.parametrize(
    "theirs",
    [
        "create table rowq.theirs (id integer)",
        "create view public.theirs as select m.message_id from rowq.message m",
    ],
    ids=["in the schema", "on a table"],
)
def test_rollback_refuses_to_drop_other_objects(
    theirs: str, empty_database: str, session: Connection
) -> None:
    migrate.migrate(empty_database, to=1)
    session.execute(theirs)
    before = snapshot(session)
    with pytest.raises(migrate.SchemaInUse, match="theirs"):
        migrate.rollback(empty_database, force=True)
    assert snapshot(session) == before
