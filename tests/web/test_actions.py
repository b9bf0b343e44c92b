"""Every button: its effect, its log line and its refusals."""

import logging
import threading

import pytest

import rowq
from rowq.web import batches, databases
from tests.engines.base import wait_until
from tests.helpers.worker_queue import MakeQueue, WorkerQueue
from tests.web.browsing import Browser, browsing, forms, notice


def make_dead(queue: WorkerQueue, count: int, error: str = "ValueError: no") -> list[int]:
    """Enqueue messages and make them dead; return their ids."""
    ids = queue.fill(count)
    for start in range(0, count, 1000):
        claimed = queue.dequeue_fast(min(1000, count - start))
        queue.fail_now(claimed[0].claim_id, error=error)
    return ids


def log_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines of the page's log."""
    return [record.getMessage() for record in caplog.records if record.name == "rowq.web"]


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rowq.web")


def test_queue_is_created_altered_filled_and_dropped(
    browser: Browser, queue_name: str, connection: object, caplog: pytest.LogCaptureFixture
) -> None:
    calls = rowq.Queue(connection)
    done = browser.post("/queue/create", queue=queue_name)
    assert notice(done.text) == f"{queue_name}: created"
    assert [stats.queue_name for stats in calls.queue_stats(queue_name)] == [queue_name]

    done = browser.send(done.text, "/queue/pause", queue=queue_name)
    assert notice(done.text) == f"{queue_name}: paused"
    assert calls.queue_stats(queue_name)[0].is_paused
    done = browser.send(done.text, "/queue/resume", queue=queue_name)
    assert not calls.queue_stats(queue_name)[0].is_paused

    done = browser.send(
        done.text, "/queue/alter", max_attempts="7", backoff_factor="3.5", lease_seconds="30"
    )
    assert notice(done.text) == f"{queue_name}: altered: max_attempts 7, backoff_factor 3.5"
    stats = calls.queue_stats(queue_name)[0]
    assert (stats.max_attempts, stats.backoff_factor, stats.lease_seconds) == (7, 3.5, 30)
    wrong = browser.send(done.text, "/queue/alter", max_attempts="many")
    assert (wrong.status_code, "must be a number" in notice(wrong.text)) == (400, True)

    body = '{"a":\r\n 1}'
    done = browser.send(done.text, "/queue/enqueue", body=body, type="t", priority="2", delay="")
    assert "enqueued" in notice(done.text)
    (message,) = calls.peek(queue_name)
    assert (message.body, message.message_type, message.priority) == ('{"a":\n 1}', "t", 2)

    wrong = browser.send(done.text, "/queue/drop", typed="orders", force="1")
    assert (wrong.status_code, notice(wrong.text)) == (400, "type the exact name of the queue")
    full = browser.send(done.text, "/queue/drop", typed=queue_name)
    assert (full.status_code, "RQ704" in notice(full.text)) == (400, True)
    done = browser.send(done.text, "/queue/drop", typed=queue_name, force="1")
    assert notice(done.text) == f"{queue_name}: dropped"
    with pytest.raises(rowq.QueueNotFound):
        calls.queue_stats(queue_name)
    assert browser.get("/queue", name=queue_name).status_code == 404

    lines = log_of(caplog)
    assert (
        lines[0] == f"'testclient' on database: create_queue '{queue_name}': {queue_name}: created"
    )
    assert any("drop_queue" in line and "RQ704" in line for line in lines)
    assert not any('a":' in line for line in lines)


def test_message_is_reset_and_cancelled(browser: Browser, make_queue: MakeQueue) -> None:
    queue = make_queue()
    (number,) = make_dead(queue, 1)
    page = browser.page("/message", queue=queue.name, id=number)
    done = browser.send(page, "/message/reset")
    assert notice(done.text) == f"message {number}: reset"
    assert queue.details_of(number).state == "ready"
    done = browser.send(done.text, "/message/cancel")
    assert done.status_code == 404  # A cancelled message is not kept.
    assert queue.counts() == (0, 0, 0, 0)


@pytest.mark.requires("cancel")
def test_message_runs_later_or_now_with_an_edited_body(
    browser: Browser, make_queue: MakeQueue
) -> None:
    queue = make_queue()
    sent = queue.enqueue(text="<old>\n&")
    page = browser.page("/message", queue=queue.name, id=sent.message_id)
    assert "Run now" not in page
    done = browser.send(page, "/message/alter", delay="60")
    assert notice(done.text) == f"message {sent.message_id}: altered"
    assert queue.details_of(sent.message_id).state == "delayed"
    assert "Run now" in done.text
    browser.post(
        "/message/alter", queue=queue.name, id=sent.message_id, body="a\r\nb", priority="2"
    )
    browser.post("/message/alter", queue=queue.name, id=sent.message_id, delay="0")
    (message,) = queue.dequeue_fast()
    assert (message.body, queue.details_of(sent.message_id).priority) == ("a\nb", 2)
    page = browser.page("/message", queue=queue.name, id=sent.message_id)
    assert "/message/alter" not in page


@pytest.mark.requires("cancel")
def test_cancel_of_leased_message_is_requested(browser: Browser, make_queue: MakeQueue) -> None:
    queue = make_queue(lease_seconds=600)
    (number,) = queue.fill(1)
    (message,) = queue.dequeue_fast()
    page = browser.page("/message", queue=queue.name, id=number)
    assert "Request cancel" in page
    assert notice(browser.send(page, "/message/cancel").text) == f"message {number}: requested"
    assert queue.extend_lease(message.claim_id).cancel_ids == [number]


def test_dead_messages_are_reset_by_selection_cause_or_all(
    browser: Browser, make_queue: MakeQueue, caplog: pytest.LogCaptureFixture
) -> None:
    queue = make_queue()
    first = make_dead(queue, 3, 'Traceback (most recent call last):\n  File "x"\nValueError: no')
    make_dead(queue, 2, "KeyError: 'id'\nmore of it")
    page = browser.page("/dead", queue=queue.name)
    assert "5 dead messages." in page
    assert "ValueError: no</a>" in page
    assert "KeyError: &#39;id&#39;</a>" in page

    done = browser.send(page, "/batch", scope="chosen", id=first[:2], do="discard")
    assert notice(done.text) == "2 messages discarded"
    assert queue.counts()[3] == 3
    one, *_ = [
        fields
        for _, fields in forms(done.text)
        if fields.get("scope") == "group" and fields["total"] == "2" and fields["do"] == "reset"
    ]
    done = browser.send(done.text, "/batch", scope="group", cause=one["cause"], do="reset")
    assert notice(done.text) == "2 messages reset"
    assert "KeyError" not in done.text
    done = browser.send(done.text, "/batch", scope="all", do="reset")
    assert notice(done.text) == "1 messages reset"
    assert "No dead messages." in done.text
    assert queue.counts()[:1] == (3,)
    lines = [line.partition(": ")[2] for line in log_of(caplog)]
    assert lines[0] == f"discard_dead '{queue.name}' {first[0]} {first[1]}: 2 discarded"
    assert lines[1].endswith("after 0: 2 reset")


def test_batch_runs_in_steps_and_skips_later_deaths(
    browser: Browser, make_queue: MakeQueue
) -> None:
    queue = make_queue()
    make_dead(queue, 1500)
    page = browser.page("/dead", queue=queue.name)
    step = browser.send(page, "/batch", scope="all", do="discard")
    assert "1,000 of about 1,500 discarded" in step.text
    late = make_dead(queue, 1)
    assert queue.counts()[3] == 501
    done = browser.send(step.text, "/batch", do="discard")
    assert notice(done.text) == "1,500 messages discarded"
    assert [message.message_id for message in queue.list_dead()] == late

    fragment = browser.send(page, "/batch", scope="all", do="discard", headers=_HTMX)
    assert fragment.status_code == 204
    assert fragment.headers["HX-Redirect"].startswith(f"/dead?queue={queue.name}&said=")


_HTMX = {"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin", "HX-Request": "true"}


def test_reset_ends_if_messages_die_again(browser: Browser, make_queue: MakeQueue) -> None:
    queue = make_queue()
    make_dead(queue, 1100)
    page = browser.page("/dead", queue=queue.name)
    step = browser.send(page, "/batch", scope="all", do="reset")
    claimed = queue.dequeue_fast(1000)
    queue.fail_now(claimed[0].claim_id, error="ValueError: no")
    done = browser.send(step.text, "/batch", do="reset")
    assert notice(done.text) == "1,100 messages reset"
    assert queue.counts()[3] == 1000


def test_batch_skips_old_message_that_dies_later(
    browser: Browser, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH", 2)
    queue = make_queue(lease_seconds=600)
    queue.fill(2)
    leased = queue.dequeue_fast(2)
    queue.fail_now(leased[0].claim_id, error="ValueError: no")
    queue.fill(1)
    (old,) = queue.dequeue_fast()
    make_dead(queue, 1)
    page = browser.page("/dead", queue=queue.name)
    step = browser.send(page, "/batch", scope="all", do="discard")
    assert "2 of about 3 discarded" in step.text
    queue.fail_now(old.claim_id, error="ValueError: no")
    step = browser.send(step.text, "/batch", do="discard")
    assert notice(step.text) == "3 messages discarded"
    assert [message.message_id for message in queue.list_dead()] == [old.message_id]


def test_purge_continues_beyond_count_limit(
    browser: Browser, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH", 3)
    monkeypatch.setattr(batches, "MAX_COUNT", 3)
    queue = make_queue()
    queue.fill(7)
    page = browser.page("/queue", name=queue.name)
    assert browser.send(page, "/batch", typed="").status_code == 400
    done = browser.send(page, "/batch", typed=queue.name)
    for _ in range(2):
        done = browser.send(done.text, "/batch")
    assert notice(done.text) == "7 messages purged"
    assert queue.counts() == (0, 0, 0, 0)


def test_form_cannot_forge_log_lines(
    browser: Browser, made: str, caplog: pytest.LogCaptureFixture
) -> None:
    forged = "1\n2026 INFO 'root' on database: drop_queue\x85\u2028"
    for path, fields in (
        ("/batch", {"do": "purge", "typed": made, "scope": "chosen", "id": forged}),
        ("/batch", {"do": "reset", "scope": "chosen", "id": forged}),
        ("/batch", {"do": "reset", "scope": "group", "cause": forged}),
        ("/queue/create", {"queue": forged}),
        ("/topics/bind", {"topic": forged}),
        ("/schedule/pause", {"schedule": forged}),
    ):
        browser.post(path, **{"queue": made, **fields})
    lines = log_of(caplog)
    assert len(lines) == 5
    assert f"purge_queue '{made}' all waiting messages: 0 purged" in lines[0]
    assert all(line.isprintable() for line in lines)


def test_slow_action_is_logged_when_it_ends(
    browser: Browser, made: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    before = rowq.Queue.pause_queue

    def slow(self: rowq.Queue, name: str) -> rowq.QueueOutcome:
        go_on.wait(60)
        return before(self, name)

    token = browser.token()
    browser.page("/")
    monkeypatch.setattr(rowq.Queue, "pause_queue", slow)
    monkeypatch.setattr(databases, "_LONGEST_SECONDS", 2.0)
    answer = browser.post("/queue/pause", queue=made, token=token)
    assert (answer.status_code, "may still take effect" in answer.text) == (503, True)
    go_on.set()
    wait_until(lambda: len(log_of(caplog)) == 2, "the outcome is logged", seconds=30)
    first, last = log_of(caplog)
    assert "may still take effect" in first
    assert last.endswith(f"pause_queue '{made}': {made}: paused")


def test_schedule_topic_and_maintenance_actions(browser: Browser, make_queue: MakeQueue) -> None:
    queue = make_queue()
    queue.create_schedule("nightly", 1, cron="0 3 * * *")
    page = browser.page("/schedule", queue=queue.name, name="nightly")
    done = browser.send(page, "/schedule/pause")
    assert notice(done.text).startswith("nightly: ")
    assert queue.list_schedules()[0].is_paused
    done = browser.send(done.text, "/schedule/resume")
    assert not queue.list_schedules()[0].is_paused
    done = browser.send(done.text, "/schedule/run")
    (message,) = queue.peek()
    assert notice(done.text) == f"nightly: message {message.message_id}: enqueued"
    assert "/schedule?queue=" in browser.page("/message", queue=queue.name, id=message.message_id)

    done = browser.post("/topics/bind", topic="a.*", queue=queue.name)
    assert notice(done.text) == "a.*: bound"
    done = browser.send(done.text, "/topics/unbind", queue=queue.name)
    assert notice(done.text) == "a.*: unbound"

    queue.fill(1)
    queue.dequeue_fast(lease_seconds=1)
    done = browser.send(browser.page("/health"), "/health/maintain")
    assert notice(done.text).startswith("maintained ")


def test_invalid_forms_are_refused(browser: Browser, made: str) -> None:
    for path, fields in (
        ("/message/reset", {"id": "x"}),
        ("/message/cancel", {"id": "9" * 30}),
        ("/message/alter", {"id": "1", "delay": "x"}),
        ("/message/alter", {"id": "1"}),
        ("/batch", {"do": "destroy"}),
        ("/batch", {"do": "reset", "scope": "chosen", "id": "x"}),
        ("/batch", {"do": "reset", "scope": "chosen"}),
        ("/batch", {"do": "reset", "scope": "group"}),
        ("/batch", {"do": "reset", "scope": ""}),
        ("/queue/enqueue", {"priority": "x"}),
        ("/queue/create", {"queue": "a\nb"}),
        ("/schedule/run", {"schedule": "nowhere"}),
    ):
        answer = browser.post(path, **{"queue": made, **fields})
        expected = 404 if path.startswith("/schedule") else 400
        assert answer.status_code == expected, (path, answer.text)
        assert notice(answer.text)
    for path in ("/dead", "/queue", "/parts/queue", "/parts/lists"):
        assert browser.get(path, name="nowhere", queue="nowhere").status_code == 404
    assert browser.get("/message", queue=made, id="x").status_code in {400, 404}
    assert browser.get("/nowhere").status_code == 404


def test_read_only_page_has_no_forms(database_url: str, make_queue: MakeQueue) -> None:
    queue = make_queue()
    (number,) = make_dead(queue, 1)
    with browsing(database_url, read_only=True) as browser:
        for path, query in (
            ("/", {}), ("/queue", {"name": queue.name}), ("/dead", {"queue": queue.name}),
            ("/message", {"queue": queue.name, "id": number}), ("/health", {}), ("/topics", {}),
        ):  # fmt: skip
            assert forms(browser.page(path, **query)) == []
        for path in ("/queue/pause", "/batch", "/", "/static/rowq.css", "/nowhere"):
            assert browser.post(path, queue=queue.name).status_code == 405
    assert not queue.queue_stats()[0].is_paused
