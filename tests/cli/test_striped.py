"""Commands with a striped queue, on one server and on several."""

import pytest

from tests.cli.conftest import Run, run_app
from tests.engines.base import free_port

pytestmark = pytest.mark.usefixtures("striped")


@pytest.fixture
def striped(run: Run, queue_name: str) -> None:
    """Create a queue with three stripes."""
    made = run("queue", "create", queue_name, "--stripes", 3, "--json")
    assert [row["outcome"] for row in made.rows] == ["created"] * 3
    assert [row["queue_name"] for row in made.rows] == [f"{queue_name}/{n}" for n in range(3)]


def test_commands_use_all_stripes(run: Run, queue_name: str) -> None:
    sent = run("enqueue", queue_name, "1", "--stripes", 3, "--dedup-key", "order-7", "--json")
    assert sent.row == {
        "queue_name": f"{queue_name}/1",
        "message_id": sent.row["message_id"],
        "outcome": "enqueued",
    }
    again = run("enqueue", queue_name, "1", "--stripes", 3, "--dedup-key", "order-7")
    assert again.out == f"duplicate of message {sent.row['message_id']} in {queue_name}/1\n"
    found = run("stats", queue_name, "--stripes", 3, "--json").rows
    assert [row["ready"] for row in found] == [0, 1, 0]
    kept = run("maintain", queue_name, "--stripes", 3, "--json").rows
    assert len(kept) == 3
    left = run("queue", "drained", queue_name, "--stripes", 3, "--json")
    assert (left.code, left.row["queue_name"], left.row["ready"]) == (4, f"{queue_name}/1", 1)
    work = ("work", queue_name, "--stripes", 3, "--drain", "--exec", "true", "--json")
    assert run(*work).row["processed"] == 1
    assert run("queue", "drained", queue_name, "--stripes", 3).out == "nothing is left\n"


def test_queue_commands_apply_to_all_stripes(run: Run, queue_name: str) -> None:
    changed = run("queue", "alter", queue_name, "--stripes", 3, "--max-leased", 7, "--json")
    assert {row["outcome"] for row in changed.rows} == {"altered"}
    found = run("stats", queue_name, "--stripes", 3, "--json").rows
    assert [row["max_leased"] for row in found] == [7, 7, 7]
    other = run("queue", "create", queue_name, "--stripes", 4, "--max-leased", 8)
    assert other.code == 4
    assert f"queue {queue_name}/0 already exists" in other.err
    assert f"{queue_name}/3: created" in other.out
    for command, outcome in (("pause", "paused"), ("resume", "resumed"), ("drop", "dropped")):
        rows = run("queue", command, queue_name, "--stripes", 4, "--json").rows
        assert [row["outcome"] for row in rows] == [outcome] * 4


def test_unreachable_server_is_reported_and_loses_no_message(
    database_url: str, queue_name: str
) -> None:
    scheme = database_url.partition("://")[0]
    away = f"{scheme}://nobody:hidden@127.0.0.1:{free_port()}/none"
    urls = f"a={database_url} b={away}"
    sent = run_app("enqueue", queue_name, "1", "--stripes", 3, "--json", url=urls)
    assert (sent.code, sent.row["server"]) == (0, "a")
    given = ("--url", f"a={database_url}", "--url", f"b={away}")
    found = run_app("stats", queue_name, "--stripes", 3, "--json", *given, url=None).rows
    assert {row["server"]: row["error"] is None for row in found} == {"a": True, "b": False}
    shown = run_app("stats", queue_name, "--stripes", 3, url=urls)
    assert "hidden" not in shown.out
    sick = run_app("health", "--json", url=urls)
    assert sick.code == 4
    (critical,) = (row for row in sick.rows if row["server"] == "b")
    assert (critical["check_name"], critical["status"]) == ("server_answers", "critical")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["enqueue", "q", "1"], "use --stripes"),
        (["enqueue", "q", "1", "--stripes", "2", "--after", "1"], "requires a stripe's own name"),
        (["stats", "--stripes", "2"], "--stripes requires QUEUE"),
        (["maintain", "--stripes", "2"], "--stripes requires QUEUE"),
        (["enqueue", "q", "1", "--stripes", "0"], "stripes must be"),
    ],
)
def test_invalid_use_of_stripes_is_refused(
    database_url: str, arguments: list[str], text: str
) -> None:
    ran = run_app(*arguments, url=f"a={database_url}")
    assert ran.code in {1, 2}, ran.err
    assert text in ran.err


def test_servers_require_different_names(database_url: str) -> None:
    for urls in (["a=" + database_url, "a=" + database_url], [database_url, database_url]):
        given = [word for url in urls for word in ("--url", url)]
        ran = run_app("enqueue", "q", "1", "--stripes", "2", *given, url=None)
        assert ran.code == 2
        assert "with different names" in ran.err
