"""Every page for an admin and for a monitor."""

import json
import re
from typing import Any

import pytest

import rowq
from tests.engines.base import Connection
from tests.helpers.worker_queue import MakeQueue, WorkerQueue
from tests.stored_times import pass_seconds
from tests.web.browsing import Browser, browsing, forms

PLANTED = "xyzzySECRETxyzzy"
HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}"
PAGES = (
    "/", "/workers", "/schedules", "/topics", "/health", "/parts/queues", "/parts/health",
    "/parts/workers",
)  # fmt: skip
OF_A_QUEUE = (
    ("/queue", "name"), ("/dead", "queue"), ("/schedules", "queue"), ("/parts/queue", "name"),
    ("/parts/lists", "name"), ("/queue/points", "name"),
)  # fmt: skip


def with_everything(make_queue: MakeQueue, word: str) -> tuple[WorkerQueue, int]:
    """Return a queue with messages in each state; what monitors must not see contains `word`."""
    queue = make_queue(history_days=1, lease_seconds=600)
    more: dict[str, Any] = {"headers": {"secret": word, word: 1}, "dedup_key": word}
    queue.enqueue({"is": word}, **more)
    queue.enqueue({"is": word}, group_key=word)
    queue.enqueue({"is": word}, group_key=word)
    queue.enqueue({"is": word}, delay_seconds=900)
    dead = queue.enqueue({"is": word}, headers={"secret": word}, priority=0).message_id
    (message,) = queue.dequeue_fast(worker_name="host 1")
    queue.fail_now(message.claim_id, error="ValueError: broken on purpose")
    queue.dequeue_fast(worker_name="host 2")
    queue.create_schedule("nightly", {"is": word}, cron="0 3 * * *", group_key=word)
    return queue, dead


def test_admin_sees_all_pages_and_messages(browser: Browser, make_queue: MakeQueue) -> None:
    queue, dead = with_everything(make_queue, PLANTED)
    for path in PAGES:
        browser.page(path)
    for path, parameter in OF_A_QUEUE:
        browser.page(path, **{parameter: queue.name})
    overview = browser.page("/")
    assert f"/queue?name={queue.name}" in overview
    assert f">{queue.name}</a>: 1 dead messages, " in overview
    page = browser.page("/queue", name=queue.name)
    assert "host 2" in page
    assert PLANTED not in page
    schedule = browser.page("/schedule", queue=queue.name, name="nightly")
    assert len(re.findall(r'<li><time datetime="[^"]*T03:00:00', schedule)) == 5
    message = browser.page("/message", queue=queue.name, id=dead)
    assert message.count(PLANTED) >= 3
    for words in ("broken on purpose", "host 1", "attempt 1", "dead"):
        assert words in message
    assert message.index("It is dead; reset makes it ready.") < message.index("<h2>Timeline</h2>")
    file = browser.get("/message/body", queue=queue.name, id=dead)
    assert json.loads(file.content) == {"is": PLANTED}
    assert file.headers["Content-Disposition"].startswith("attachment")
    found = browser.page("/queue/find", name=queue.name, key=PLANTED)
    assert PLANTED in found
    checked = browser.send(browser.page("/health"), "/health/examine")
    assert "<h2>Doctor</h2>" in checked.text
    with browser.client.app.state.site.databases["database"].examining:  # type: ignore[attr-defined]
        assert browser.send(checked.text, "/health/examine").status_code == 409


def test_pages_show_reports_of_idle_workers(
    monitor: Browser, make_queue: MakeQueue, connection: Connection
) -> None:
    queue = make_queue()
    report = {"worker_name": "idle 8", "host_name": HOSTILE, "worker_version": "rowq 0.1.0"}
    queue.report_worker("w", threads=4, **report)
    pass_seconds(connection, queue.name, 100)
    queue.report_worker("w", threads=4, completed=123_000, failed=61_500, **report)
    queue.report_worker("gone", worker_name="killed 9")
    pass_seconds(connection, queue.name, 25)
    for page in (monitor.page("/workers"), monitor.page("/queue", name=queue.name)):
        for words in ("idle 8", "killed 9", "rowq 0.1.0", "123,000", "61,500"):
            assert words in page
        assert re.search(r"\b2[5-9] s\b", page)
        assert "&lt;script&gt;" in page
        assert HOSTILE not in page
    (row,) = re.findall(rf">{queue.name}</a>.*?</tr>", monitor.page("/parts/queues"), re.DOTALL)
    cells = dict(re.findall(r'data-label="([^"]*)">([^<]*)</td>', row))
    assert cells["In/s"] in {"-", cells["Out/s"]}
    assert 600 < float(cells["Out/s"].replace(",", "")) <= 1230
    assert 300 < float(cells["Failed/s"].replace(",", "")) <= 615
    assert cells["Workers"] == "2"


def test_page_without_workers_and_claims(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for routine in ("list_workers", "list_claims"):
        monkeypatch.setattr(rowq.Queue, routine, lambda *_, **__: [])
    with browsing(database_url) as browser:
        page = browser.page("/workers")
    assert "No active workers." in page
    assert "No claims." in page


def test_monitor_sees_no_message_contents_and_no_buttons(
    monitor: Browser, make_queue: MakeQueue
) -> None:
    queue, dead = with_everything(make_queue, PLANTED)
    answers = [monitor.get(path) for path in PAGES]
    answers += [monitor.get(path, **{name: queue.name}) for path, name in OF_A_QUEUE]
    answers += [
        monitor.get("/schedule", queue=queue.name, name="nightly"),
        monitor.get("/metrics"),
    ]
    for answer in answers:
        assert answer.status_code == 200, answer.text
        assert forms(answer.text) == []
    refused = [
        monitor.get("/message", queue=queue.name, id=dead),
        monitor.get("/message/body", queue=queue.name, id=dead),
        monitor.get("/queue/find", name=queue.name, key=PLANTED),
        monitor.post("/message/reset", queue=queue.name, id=dead),
        monitor.post("/queue/pause", queue=queue.name),
        monitor.post("/health/examine"),
        monitor.post("/batch", queue=queue.name, do="reset", scope="all"),
    ]
    assert [answer.status_code for answer in refused] == [403] * len(refused)
    assert all(PLANTED not in answer.text for answer in [*answers, *refused])
    assert "broken on purpose" in monitor.page("/dead", queue=queue.name)
    assert queue.counts()[3] == 1
