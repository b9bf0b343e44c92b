"""health after a failover: ids that restart, and prepared transactions that remain.

A dump may lack AUTO_INCREMENT values, and claim ids come from the server.
"""

import re
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from rowq.tools.doctor import Status, examine
from rowq.tools.migrate import migrate
from tests.engines.base import Connection, Server
from tests.helpers.calls import Row, call, outcomes, rolled_back
from tests.helpers.dialects import preparing_dialect_of
from tests.helpers.queues import CheckedQueue, new_queue

pytestmark = pytest.mark.promise("P08")

NOTHING = "seconds a prepared XA transaction has kept rows locked"


@pytest.fixture(autouse=True)
def _only_mysql(server: Server) -> None:
    if server.engine != "mysql":
        pytest.skip(f"about MariaDB, not about {server.engine}; to run it: --engine mariadb11.8")


@pytest.fixture
def owner(server: Server, empty_database: str) -> Iterator[Connection]:
    """Return a session of root on a server of its own."""
    migrate(empty_database)
    with closing(server.connect(empty_database)) as session:
        session.execute("grant process on *.* to rowq_owner@localhost")
        yield session


@pytest.fixture
def own_queue(owner: Connection) -> CheckedQueue:
    """Return a queue on that server."""
    return new_queue(owner, "q", result_seconds=1000, history_days=100)


def check(connection: Connection, name: str) -> Row:
    """Return one check of health.

    The server caches its list of transactions for 100 ms.
    """
    time.sleep(0.2)
    [row] = [row for row in call(connection, "health") if row.check_name == name]
    return row


def behind(connection: Connection) -> dict[str, float]:
    """Return by how many numbers each generator is behind, as health shows it."""
    rows = [row for row in call(connection, "health") if row.check_name == "sequence_behind"]
    assert [row.detail.split()[0] for row in rows] == ["claim", "message", "queue"]
    return {row.detail.split()[0]: row.value for row in rows if row.status == "critical"}


@pytest.mark.promise("P46")
@pytest.mark.parametrize("kept", ["result_seconds", "history_days"])
def test_after_failover_repairs_message_ids_that_restart(
    owner: Connection, own_queue: CheckedQueue, kept: str
) -> None:
    own_queue.call("alter_queue", **{"result_seconds": 0, "history_days": 0, kept: 100})
    ids = own_queue.enqueue("a", "b", "c")
    for _ in ids:
        own_queue.call("complete", claim_id=own_queue.dequeue_one().claim_id)
    assert behind(owner) == {}

    owner.execute("truncate table rowq.message")
    assert behind(owner) == {"message": 3}
    call(owner, "after_failover")
    assert behind(owner) == {}
    assert own_queue.enqueue("d") > [max(ids) + 10**9]


@pytest.mark.promise("P46")
def test_after_failover_repairs_claims_of_the_same_start_second(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    [message_id] = own_queue.enqueue("a")
    other = own_queue.dequeue_one().claim_id + 5000
    owner.execute("update rowq.claim set claim_id = %s where claim_id > 0", [other])
    found = behind(owner)
    assert found.keys() == {"claim"}
    assert 4000 < found["claim"] <= 5000
    call(owner, "after_failover")
    assert behind(owner) == {}

    own_queue.enqueue("b")
    assert own_queue.dequeue_one().claim_id > other + 100000
    assert outcomes(own_queue.call("complete", claim_id=other)) == {message_id: "completed"}


def test_claims_of_a_later_server_start_are_never_repeated(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    own_queue.enqueue("a")
    own_queue.dequeue_one()
    owner.execute("update rowq.claim set claim_id = claim_id + 20000000 where claim_id > 0")
    assert behind(owner) == {}


@pytest.mark.promise("P46")
def test_after_failover_leaves_no_row_and_joins_a_transaction(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    own_queue.enqueue("a")
    with rolled_back(owner):
        moved = {row.name: row.is_now for row in call(owner, "after_failover")}
        own_queue.enqueue("rolled back")
    assert own_queue.counts() == (1, 0, 0, 0)
    assert own_queue.enqueue("b") > [moved["message"]]
    call(owner, "after_failover")
    assert owner.execute("select count(*) from rowq.queue").fetchone() == (1,)
    assert owner.execute("select count(*) from rowq.message").fetchone() == (2,)


def test_doctor_reports_message_ids_that_restart(
    owner: Connection, own_queue: CheckedQueue, empty_database: str
) -> None:
    own_queue.enqueue("a")
    own_queue.call("complete", claim_id=own_queue.dequeue_one().claim_id)
    owner.execute("truncate table rowq.message")
    found = {check.check_name: check for check in examine(empty_database)}
    assert found["health: sequence_behind"].status is Status.FAILED
    assert "rowq after-failover" in found["health: sequence_behind"].detail
    call(owner, "after_failover")
    assert not [check for check in examine(empty_database) if "sequence" in check.check_name]


@pytest.mark.promise("P16")
def test_health_and_doctor_report_a_prepared_transaction(
    server: Server, owner: Connection, own_queue: CheckedQueue, empty_database: str
) -> None:
    dialect = preparing_dialect_of(owner)
    name = "it's rowq_test_failover"
    row = check(owner, "prepared_transactions")
    assert (row.status, row.value, row.detail) == ("ok", 0, NOTHING)
    assert prepared_check(empty_database) == (Status.OK, "none")

    own_queue.enqueue("a")
    with closing(server.connect(empty_database)) as worker:
        dialect.begin_prepared(worker, name)
        own_queue.via(worker).dequeue_one()
        dialect.prepare(worker, name)
    assert "xa recover" in check(owner, "prepared_transactions").detail
    assert own_queue.dequeue() == []

    status, detail = prepared_check(empty_database)
    assert status is Status.WARNING
    [statement] = re.findall(r"xa rollback .*?(?=;)", detail)
    owner.execute(statement)
    assert check(owner, "prepared_transactions").detail == NOTHING
    assert prepared_check(empty_database) == (Status.OK, "none")
    assert len(own_queue.dequeue()) == 1


def prepared_check(url: str) -> tuple[Status, str]:
    """Return status and detail of doctor's check of prepared transactions."""
    [found] = [check for check in examine(url) if check.check_name == "prepared transactions"]
    return found.status, found.detail
