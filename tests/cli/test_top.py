"""rowq top: its screen fits the terminal, handles keys, and is restored."""

from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

import rowq
from rowq.messages import Claim, DeadMessage, HealthCheck, QueueStats, WorkerReport
from rowq.tools.command.top.frame import ORDERS, Snapshot, View, frame
from rowq.tools.throughput import Rates
from tests.cli.conftest import Run
from tests.cli.tmux import tmux
from tests.cli.working import PROGRAM
from tests.client.proxy import relay
from tests.engines.base import wait_until

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SIZES = [(80, 24), (200, 50)]


def stats(name: str, **counts: Any) -> QueueStats:
    """Return a queue's stats; other counts are 0."""
    defaults: dict[str, Any] = {field.name: None for field in fields(QueueStats)}
    defaults |= dict.fromkeys(("is_paused", "ready", "delayed", "leased", "dead"), 0)
    return QueueStats(**(defaults | {"queue_name": name} | counts))


def snapshot(queues: int = 3, **more: Any) -> Snapshot:
    """Return a snapshot of queues; later ones have more and older messages."""
    found = [stats(f"queue {n:03}", ready=n, oldest_ready_seconds=60.0 * n) for n in range(queues)]
    return replace(Snapshot(0, "PostgreSQL 18", found), **more)


def lines(view: View, seen: Snapshot, size: tuple[int, int] = SIZES[0]) -> list[str]:
    """Return a frame on a terminal of this size."""
    width, height = size
    console = Console(width=width, height=height)
    with console.capture() as captured:
        console.print(frame(view, seen, width=width, height=height))
    return captured.get().rstrip("\n").splitlines()


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_frame_fits_terminal(size: tuple[int, int]) -> None:
    width, height = size
    claims = [Claim(f"queue {n}", n, "host " * 30, 10, NOW, 5.0 - n) for n in range(60)]
    dead = [DeadMessage(n, 5, 3, "type", NOW, NOW, "error " * 60) for n in range(60)]
    checks = [HealthCheck("dead_messages", None, "warning", 1.0, "x" * 300)] * 60
    found: dict[str, Any] = {"claims": claims, "dead": dead, "checks": checks}
    shown = lines(View(), snapshot(200, workers=reports(60), **found), size)
    assert len(shown) <= height
    assert max(map(len, shown)) <= width
    text = "\n".join(shown)
    for words in (
        "queue 000",
        "more queues",
        "last seen",
        "lease left",
        "last error",
        "warning",
        "q quit",
    ):
        assert words in text
    assert ("ready, trend" in text) == (size == SIZES[1])


def test_health_check_begins_with_value() -> None:
    checks = [
        HealthCheck("dead_messages", "emails", "warning", 1204.0, "dead messages, see list_dead"),
        HealthCheck("clean_up_horizon", None, "critical", 7200.4, "session 5 keeps dead rows"),
        HealthCheck("server_answers", None, "critical", None, "no answer"),
        HealthCheck("sequence_behind", None, "critical", 3.0, "rowq.message_seq is behind"),
    ]
    shown = [line.strip() for line in lines(View(), snapshot(1, checks=checks))]
    for line in (
        "warning   emails: 1,204 dead messages, see list_dead",
        "critical  clean up horizon: 7,200 s: session 5 keeps dead rows",
        "critical  server answers: no answer",
        "critical  sequence behind: 3: rowq.message_seq is behind",
    ):
        assert line in shown


def test_frame_marks_paused_queue_and_no_dead_messages() -> None:
    seen = Snapshot(0, "PostgreSQL 18", [stats("invoices", is_paused=True)])
    view = View(entered="invoices", shows_dead=True)
    text = "\n".join(lines(view, seen))
    assert "invoices (paused)" in text
    assert "no dead messages" in text


def test_selected_queue_is_on_screen() -> None:
    view, seen = View(), snapshot(200)
    for _ in range(150):
        view.press("down", seen.queues)
    shown = lines(view, seen)
    assert len(shown) <= SIZES[0][1]
    assert any("queue 150" in line for line in shown)


def test_order_key_cycles_through_orders() -> None:
    view, seen = View(), snapshot()
    firsts = []
    for _ in ORDERS:
        firsts.append(view.ordered(seen.queues)[0].queue_name)
        view.press("s", seen.queues)
    assert firsts == ["queue 000", "queue 002", "queue 000", "queue 002"]
    assert view.order == ORDERS[0]


def reports(queues: int) -> list[WorkerReport]:
    """Return a worker of each queue; later ones were seen longer ago."""
    return [
        WorkerReport(
            *(f"queue {n:03}", f"id {n}", f"shop-{n}", "host " * 9, "rowq 0.1.0", 4, NOW, NOW),
            *(7.0 * n, 50, 5, 2.5, 0.5),
        )
        for n in range(queues)
    ]


def test_rates_are_computed_from_snapshots_and_reports() -> None:
    view = View(max_count=100)
    view.remember(Snapshot(1, "", [stats("a", ready=10, leased=1), stats("b", ready=100)]))
    workers = [replace(one, queue_name="a") for one in reports(2)]
    assert view.rates("a") == Rates()
    queues = [stats("a", ready=20, dead=9), stats("b", ready=100)]
    last = Snapshot(3, "", queues, workers=workers)
    view.remember(last)
    assert view.rates("a") == Rates(2, 14, 5, 1)
    assert view.rates("b").arrived is None
    assert view.ready_trend("a") == [10, 20]
    for width, heads in ((80, ("in/s", "out/s")), (100, ("in/s", "out/s", "failed/s"))):
        text = "\n".join(lines(view, last, (width, 24)))
        for words in (*heads, "14.0", "5.0", "100+"):
            assert words in text


def test_frame_shows_reports_of_idle_workers() -> None:
    text = lines(View(), snapshot(2, workers=reports(2)), (100, 24))
    (first,) = (line for line in text if "shop-0" in line)
    for words in ("queue 000", "host host", "rowq 0.1.0", "4", "2.5", "0 s"):
        assert words in first
    (head,) = (line for line in text if "last seen" in line)
    for words in ("worker", "queue", "host", "version", "threads", "out/s"):
        assert words in head


def test_frame_escapes_names_and_errors() -> None:
    bell = [Claim("a", 1, "\x07bell", 1, NOW, 1.0)]
    workers = [replace(one, worker_name="\x1b]0;y", host_name="\x07") for one in reports(1)]
    seen = Snapshot(0, "\x1b[2J", [stats("a\x1b[31m")], workers, bell)
    text = "\n".join(lines(View(error="\x1b]0;x"), seen))
    assert not {"\x1b", "\x07"} & set(text)
    assert "\\x1b[31m" in text


def test_top_prints_single_snapshot_without_terminal(
    run: Run, queue: rowq.Queue, made: str
) -> None:
    queue.enqueue(made, 1)
    queue.dequeue_fast(made, worker_name="host 7")
    queue.report_worker(made, "w", worker_name="idle 8", host_name="shop.example")
    for options in (["--once"], []):
        done = run("top", "--queue", made, *options)
        assert done.code == 0, done.err
        assert made in done.out
        for words in ("host 7", "idle 8", "shop.example"):
            assert words in done.out
        assert "q quit" not in done.out
    assert run("top", "--queue", "nowhere").code == 1


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_top_handles_keys_and_restores_terminal(
    queue: rowq.Queue, made: str, database_url: str, size: tuple[int, int]
) -> None:
    queue.enqueue(made, 1)
    queue.fail_now(made, queue.dequeue_fast(made)[0].claim_id, error="broken on purpose")
    with tmux(size, database_url) as terminal:
        wait_until(terminal.says("shell>"), "the shell waits")
        terminal.type(
            f"a=$(stty -g); {PROGRAM} top --queue {made} --interval 0.2;"
            ' test "$a" = "$(stty -g)" && echo un""changed',
            "Enter",
        )
        wait_until(terminal.says("Escape all queues"), "one queue is shown")
        assert "shell>" not in terminal.screen()
        terminal.type("d")
        wait_until(terminal.says("broken on purpose"), "the dead are shown")
        terminal.type("d")
        wait_until(terminal.hides("broken on purpose"), "they are not")
        terminal.type("Escape")
        wait_until(terminal.says("Enter one queue"), "all queues are shown")
        assert len(terminal.screen().splitlines()) <= size[1]
        terminal.type("p")
        wait_until(terminal.says("paused"), "it pauses")
        terminal.type("q")
        wait_until(terminal.says("unchanged"), "the shell is back")
        assert "rowq top  " not in terminal.screen()


def test_top_shows_lost_connection_and_recovers(
    queue: rowq.Queue, made: str, database_url: str
) -> None:
    with relay(database_url) as network, tmux(SIZES[1], network.url) as terminal:
        wait_until(terminal.says("shell>"), "the shell waits")
        terminal.type(f"{PROGRAM} top --queue {made} --interval 0.2; echo status $?", "Enter")
        wait_until(terminal.says("Escape all queues"), "one queue is shown")
        network.refuse(connections=True)
        network.cut()
        wait_until(terminal.says("no connection"), "the error is shown")
        assert made in terminal.screen()
        network.calm()
        wait_until(terminal.hides("no connection"), "it has recovered")
        queue.enqueue_batch(made, [rowq.NewMessage(data=1)] * 17)
        wait_until(terminal.says(" 17 "), "new messages are shown")
        terminal.type("C-c")
        wait_until(terminal.says("status 0"), "it has ended")
