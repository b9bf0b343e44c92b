"""Names, bodies, headers and errors that could run as script, or break or hang a page."""

import re
from typing import Any

import pytest

import rowq
from rowq.tools.terminal import cause_of
from rowq.web.bodies import shown_body
from rowq.web.causes import group_dead, kind_of
from tests.engines.base import Connection
from tests.helpers.worker_queue import MakeQueue
from tests.web.browsing import Browser, elements
from tests.web.test_pages import OF_A_QUEUE, PAGES

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>\"' {{7*7}} {%x%} </pre></textarea>"
NAMES = [
    "a/b", "../..", "..", "a%2Fb%", "?&=#+;", "\"'<b>`", "<script>alert(1)</script>", "😀 é",
    "javascript:alert(1)", "{{7*7}}", " ", "&amp;", "a\\b",
]  # fmt: skip


def check(page: str) -> None:
    """Check that a page runs only its own scripts, and has no script in attributes."""
    for tag, attributes in elements(page):
        assert tag != "img"
        if tag == "script":
            assert re.fullmatch(r"/static/[\w.-]+\.js", attributes.get("src") or "")
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name != "style", (tag, value)
            if name in {"href", "action", "src", "hx-get", "hx-post"}:
                assert (value or "").startswith(("/", "#")), (tag, value)
                assert not (value or "").startswith("//")
    assert re.findall(r"<script[^>]*>([^<]+)", page) == []


@pytest.mark.parametrize("name", NAMES)
def test_queue_of_any_name_has_working_pages(
    browser: Browser, connection: Connection, queue_name: str, name: str
) -> None:
    name = f"{name}{queue_name[-8:]}{name}"
    calls = rowq.Queue(connection)
    calls.create_queue(name)
    try:
        number = calls.enqueue(name, 1).message_id
        check(browser.page("/"))
        for path, parameter in OF_A_QUEUE[:5]:
            check(browser.page(path, **{parameter: name}))
        page = browser.page("/queue", name=name)
        assert calls.queue_stats(name)[0].is_paused is False
        done = browser.send(page, "/queue/pause")
        assert calls.queue_stats(name)[0].is_paused is True
        check(done.text)
        message = browser.page("/message", queue=name, id=number)
        check(message)
        links = [found["href"] for tag, found in elements(message) if tag == "a"]
        back = next(link for link in links if link and link.startswith("/queue?name="))
        assert browser.get(back).status_code == 200
        assert browser.get("/message/body", queue=name, id=number).content == b"1"
        assert browser.send(message, "/message/cancel").status_code == 404
        assert calls.queue_stats(name)[0].ready == 0
    finally:
        calls.drop_queue(name, force=True)


def test_message_content_is_never_executed(browser: Browser, make_queue: MakeQueue) -> None:
    queue = make_queue(history_days=1)
    options: dict[str, Any] = {
        "headers": {SCRIPT: SCRIPT, "tick": "x", "schedule": SCRIPT},
        "message_type": SCRIPT[:100],
        "dedup_key": SCRIPT,
    }
    ids = [
        queue.enqueue({SCRIPT: [SCRIPT, {"a": SCRIPT}]}, **options).message_id,
        queue.enqueue(text=SCRIPT, headers=options["headers"]).message_id,
        queue.enqueue(SCRIPT.encode(), headers=options["headers"]).message_id,
    ]
    claimed = queue.dequeue_fast(3, worker_name=SCRIPT)
    check(browser.page("/workers"))
    check(browser.page("/parts/lists", name=queue.name))
    queue.fail_now(claimed[0].claim_id, error=f"{SCRIPT}\n{SCRIPT}")
    for number in ids:
        for form in ("tree", "text", "hex"):
            page = browser.page("/message", queue=queue.name, id=number, form=form)
            check(page)
            assert "alert(1)" in page or form == "hex"
    page = browser.page("/dead", queue=queue.name)
    check(page)
    answer = browser.get("/message/body", queue=queue.name, id=ids[1])
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"].startswith("attachment;")
    check(browser.post("/schedule/run", queue=queue.name, schedule=SCRIPT[:90]).text)


def test_url_parameters_are_never_executed(browser: Browser, made: str) -> None:
    for path in (*PAGES, "/queue", "/dead", "/message", "/schedule", "/queue/find", "/batch"):
        for parameter in (
            "name",
            "queue",
            "id",
            "form",
            "cause",
            "before",
            "said",
            "key",
            "paused",
        ):
            answer = browser.get(path, **{"queue": made, "name": made, parameter: SCRIPT})
            assert answer.status_code < 500, (path, parameter, answer.text)
            check(answer.text)


def test_large_body_is_truncated_and_file_is_complete(
    browser: Browser, make_queue: MakeQueue
) -> None:
    queue = make_queue(max_body_length=8_000_000)
    number = queue.enqueue({"a": ["x" * 90] * 50_000}).message_id
    page = browser.page("/message", queue=queue.name, id=number)
    assert len(page) < 200_000
    assert "Truncated; download the file" in page
    file = browser.get("/message/body", queue=queue.name, id=number)
    assert len(file.content) > 4_500_000
    assert len(browser.page("/queue", name=queue.name)) < 100_000


def details(**values: Any) -> rowq.MessageDetails:
    defaults: dict[str, Any] = dict.fromkeys(rowq.MessageDetails.__slots__)
    return rowq.MessageDetails(**(defaults | values))


@pytest.mark.parametrize(
    ("body", "form"),
    [
        ("[" * 100_000 + "]" * 100_000, "text"),
        ("[" * 60 + "]" * 60, "tree"),
        ("[" + "1," * 100_000 + "1]", "tree"),
        ('{"a": NaN, "b": 1e999, "c": "\\ud800"}', "tree"),
        ("9" * 10_000, "text"),
        ("", "text"),
        ("{", "text"),
    ],
)
def test_difficult_body_is_shown(body: str, form: str) -> None:
    shown = shown_body(details(message_id=1, body=body), None)
    assert shown.form == form
    assert len(repr(shown)) < 500_000


def test_binary_body_is_shown_as_hex() -> None:
    shown = shown_body(details(body_binary=b"\x00abc<>" * 3), "tree")
    assert shown.form == "hex"
    assert shown.text.splitlines()[0].startswith("00000000  00 61 62 63 3c 3e 00")
    assert shown_body(details(), "tree").form == "none"


def test_cause_and_kind_of_errors() -> None:
    traceback = 'Traceback (most recent call last):\n  File "a.py", line 3\nshop.NoStock: of 17\n'
    assert cause_of(traceback) == "shop.NoStock: of 17"
    assert cause_of('  File "a.py", line 3, in x\n    y()\nKeyError: 4') == "KeyError: 4"
    assert cause_of("\n first \nsecond") == "first"
    assert cause_of(None) == cause_of(" ") == "no error text"
    assert kind_of(traceback) == "shop.NoStock"
    hidden = "hidden error"
    for error, kind in (
        ("no stock of xyzzy", hidden),
        ("xyzzy: not there", hidden),
        ("secret", hidden),
        ("KeyError: 'xyzzy'", "KeyError"),
        ("StopIteration", "StopIteration"),
        ("shop.NoStock: xyzzy", "shop.NoStock"),
        (
            "java.lang.IllegalStateException: xyzzy\n\tat shop.Xyzzy",
            "java.lang.IllegalStateException",
        ),
        (f"{traceback}xyzzy.com: more text\nxyzzy: 1", "shop.NoStock"),
        (f"{traceback.replace('shop.NoStock', 'x.Y')}\nDuring that\n\n{traceback}", "shop.NoStock"),
        (traceback.replace("shop.NoStock", "xyzzy"), hidden),
    ):
        assert kind_of(error) == kind, error


def dead(number: int, error: str) -> rowq.DeadMessage:
    defaults: dict[str, Any] = dict.fromkeys(rowq.DeadMessage.__slots__)
    return rowq.DeadMessage(**(defaults | {"message_id": number, "last_error": error}))


def test_many_causes_are_merged_without_numbers() -> None:
    few = [dead(n, f"HTTP {400 + n % 2}") for n in range(10)]
    assert sorted(group.cause for group in group_dead(few)) == ["HTTP 400", "HTTP 401"]
    many = [dead(n, f"no stock for order {n}") for n in range(30)] + [dead(99, "KeyError")]
    groups = group_dead(many)
    assert [(group.cause, group.size) for group in groups] == [
        ("no stock for order #", 30), ("KeyError", 1),
    ]  # fmt: skip


def test_page_limits_number_of_causes(browser: Browser, make_queue: MakeQueue) -> None:
    queue = make_queue()
    for number in range(60):
        queue.enqueue(number)
        (message,) = queue.dequeue_fast()
        word = chr(97 + number // 26) + chr(97 + number % 26)
        queue.fail_now(message.claim_id, error=f"{word}: {'x' * 3000}")
    page = browser.page("/dead", queue=queue.name)
    assert "more causes not shown" in page
    check(page)
