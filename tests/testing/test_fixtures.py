"""rowq_queue works in a transaction that is rolled back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rowq
from tests.engines.base import Connection

# Plugins of this run are left out of those that a test starts.
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
# It is run by a pytest of its own.
TESTS = """
import pytest
import rowq


def test_sees_its_own(rowq_queue):
    rowq_queue.create_queue("orders_of_plugin")
    rowq_queue.enqueue("orders_of_plugin", 1)
    assert rowq_queue.dequeue_fast("orders_of_plugin")[0].data == 1


def test_begins_anew(rowq_queue):
    with pytest.raises(rowq.QueueNotFound):
        rowq_queue.peek("orders_of_plugin")
"""


def test_rowq_queue_hides_messages_from_other_sessions(
    rowq_queue: rowq.Queue, connection: Connection, queue_name: str
) -> None:
    rowq_queue.create_queue(queue_name)
    rowq_queue.enqueue(queue_name, {"id": 1})
    rowq_queue.enqueue(queue_name, {"id": 2}, delay_seconds=60)
    (message,) = rowq_queue.dequeue_fast(queue_name)
    rowq_queue.complete(queue_name, message.claim_id)
    assert rowq_queue.queue_stats(queue_name)[0].delayed == 1
    with pytest.raises(rowq.QueueNotFound):
        rowq.Queue(connection).peek(queue_name)


def test_refused_call_leaves_the_transaction_usable(
    rowq_queue: rowq.Queue, queue_name: str
) -> None:
    rowq_queue.create_queue(queue_name)
    with pytest.raises(rowq.InvalidArgument):
        rowq_queue.enqueue(queue_name, 1, priority=10)
    with pytest.raises(rowq.WrongTransactionState):
        rowq_queue.dequeue_wait(queue_name, wait_seconds=0.1)
    assert rowq_queue.enqueue(queue_name, 1).outcome == "enqueued"


@pytest.mark.slow("runs pytest in pytest")
def test_pytest_loads_the_fixtures_which_roll_back(database_url: str, tmp_path: Path) -> None:
    said = 'pytest_plugins = ["rowq.contrib.testing"]\n'
    (tmp_path / "conftest.py").write_text(said, encoding="utf-8")
    (tmp_path / "test_orders.py").write_text(TESTS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, **ALONE, "ROWQ_TEST_URL": database_url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_missing_url_fails_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(TESTS, encoding="utf-8")
    environment = {name: text for name, text in os.environ.items() if name != "ROWQ_TEST_URL"}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "rowq.contrib.testing",
            "-p",
            "no:cacheprovider",
        ],
        cwd=tmp_path,
        env=environment | ALONE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "set ROWQ_TEST_URL to the URL of a database for tests" in done.stdout
