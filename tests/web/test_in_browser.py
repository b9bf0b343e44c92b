"""The page in chromium, without violations of its security policy."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import playwright.sync_api as play
import pytest

import rowq
from tests.engines.base import Connection
from tests.helpers.worker_queue import MakeQueue
from tests.web.chromium import PROGRAM, chromium, window
from tests.web.scenes import shop
from tests.web.test_actions import make_dead
from tests.web.test_live import served

pytestmark = [
    pytest.mark.skipif(
        PROGRAM is None,
        reason="no chromium; to run it: apt-get install --no-install-recommends chromium",
    ),
    pytest.mark.slow("a browser"),
]

PATIENCE = 30_000
"""Milliseconds; long enough for a loaded machine."""
CHART_WIDTH = "Math.min(...[...document.querySelectorAll('.u-over')].map(e => e.clientWidth))"
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser() -> Iterator[play.Browser]:
    play.expect.set_options(timeout=PATIENCE)
    with chromium() as found:
        yield found


@pytest.fixture
def address(database_url: str) -> Iterator[str]:
    with served(database_url, interval=0.2) as (found, _):
        yield found


def test_pause_is_shown_in_second_window(
    browser: play.Browser, address: str, make_queue: MakeQueue
) -> None:
    queue = make_queue()
    queue.fill(3)
    with window(browser) as first, window(browser) as second:
        for one in (first, second):
            one.page.goto(f"{address}/queue?name={queue.name}")
            play.expect(one.page.locator(".u-title").first).to_have_text("Messages")
            assert one.page.evaluate(CHART_WIDTH) > 400
        second.page.get_by_text("Settings").click()
        first.page.get_by_role("button", name=f"Pause {queue.name}").click()
        play.expect(first.page.get_by_role("status").last).to_contain_text("paused")
        play.expect(second.page.get_by_role("button", name=f"Resume {queue.name}")).to_be_visible()
        play.expect(second.page.get_by_text("No deliveries")).to_be_visible()
        # The opened settings stay open.
        play.expect(second.page.get_by_label("max attempts")).to_be_visible()
    assert queue.queue_stats()[0].is_paused


def test_group_of_dead_messages_is_reset_by_keyboard(
    browser: play.Browser, address: str, make_queue: MakeQueue
) -> None:
    queue = make_queue()
    make_dead(queue, 3, "KeyError: 'sku'")
    make_dead(queue, 2, "TimeoutError: no answer")
    with window(browser) as one:
        page = one.page
        page.goto(address)
        page.keyboard.press("Tab")
        play.expect(page.get_by_text("Skip to content")).to_be_focused()
        tab_to(page, page.locator(f'a[href^="/dead?queue={queue.name}"]'))
        page.keyboard.press("Enter")
        play.expect(page.get_by_role("link", name="KeyError: 'sku'")).to_be_visible()
        row = page.get_by_role("row").filter(has_text="TimeoutError: no answer").first
        tab_to(page, row.get_by_role("button", name="Reset group"))
        page.keyboard.press("Space")
        play.expect(page.get_by_role("status").last).to_have_text("2 messages reset")
        play.expect(page.get_by_text("TimeoutError")).to_have_count(0)
    assert queue.counts() == (2, 0, 0, 3)


def test_times_are_in_browser_time_zone(
    browser: play.Browser, address: str, make_queue: MakeQueue
) -> None:
    queue = make_queue()
    due = datetime(datetime.now(UTC).year + 1, 7, 1, 22, 30, tzinfo=UTC)
    first = queue.enqueue(1, run_at=due).message_id
    queue.create_schedule("yearly", 1, cron="0 3 1 7 *", time_zone="Europe/Berlin")
    for zone, shown in (("Asia/Tokyo", f"{due.year}-07-02 07:30:00"), ("UTC", f"{due:%F %T}")):
        with window(browser, zone=zone) as one:
            one.page.goto(f"{address}/queue?name={queue.name}")
            times = one.page.locator("#lists time")
            play.expect(times).to_have_text(shown)
            play.expect(times).to_have_attribute("title", due.isoformat())
            play.expect(one.page.locator("footer")).to_contain_text(f"Times in {zone};")
            more = queue.enqueue(2, run_at=due).message_id
            queue.enqueue(3)
            queue.dequeue_fast()
            play.expect(times).to_have_text([shown, shown])
            queue.cancel([more])
            one.page.goto(f"{address}/schedules?queue={queue.name}")
            play.expect(one.page.locator("td[data-label=Next]")).to_contain_text(" 03:00:00 CEST")
    queue.cancel([first])


def test_workers_and_dead_messages_can_be_filtered(
    browser: play.Browser, address: str, make_queue: MakeQueue
) -> None:
    queue = make_queue()
    queue.fill(2)
    names = [f"{host} {queue.name[-8:]}" for host in ("alpha", "beta")]
    for name in names:
        queue.dequeue_fast(worker_name=name)
    dead = make_queue()
    make_dead(dead, 2, "KeyError: 'sku'")
    make_dead(dead, 1, "TimeoutError: no answer")
    with window(browser) as one:
        page = one.page
        page.goto(f"{address}/workers")
        page.get_by_label("Filter workers").fill(names[0].upper())
        play.expect(page.get_by_text(names[0])).to_be_visible()
        play.expect(page.get_by_text(names[1])).to_be_hidden()
        page.evaluate("document.body.dispatchEvent(new CustomEvent('claims'))")
        page.wait_for_timeout(500)
        play.expect(page.get_by_text(names[1])).to_be_hidden()
        page.goto(f"{address}/dead?queue={dead.name}")
        page.get_by_label("Error contains").fill("timeout")
        page.get_by_role("button", name="Filter").click()
        play.expect(page.get_by_text("KeyError")).to_have_count(0)
        play.expect(page.get_by_role("link", name="TimeoutError: no answer")).to_be_visible()
        play.expect(page.get_by_role("button", name="Reset all")).to_have_count(0)
        play.expect(page.get_by_text("1 of the newest 3 dead messages match.")).to_be_visible()
        page.get_by_label("Error contains").fill("nothing like this")
        page.get_by_role("button", name="Filter").click()
        play.expect(page.get_by_text("No matches in the newest 3 dead messages.")).to_be_visible()
        page.get_by_role("link", name="Show all").click()
        play.expect(page.get_by_text("KeyError: 'sku'").first).to_be_visible()


def tab_to(page: play.Page, wanted: play.Locator) -> None:
    """Press Tab until an element has the focus."""
    wanted.wait_for(timeout=PATIENCE)
    for _ in range(200):
        page.keyboard.press("Tab")
        if wanted.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError("not reachable by Tab")


@pytest.mark.slow("a browser, and much text", ci=False)
def test_pages_fit_phone_in_light_and_dark(
    browser: play.Browser, address: str, connection: Connection, queue_name: str
) -> None:
    names = shop(rowq.Queue(connection), queue_name[-8:])
    backgrounds = set()
    for dark in (False, True):
        with window(browser, width=360, height=640, dark=dark) as one:
            for path in pages_of(rowq.Queue(connection), names):
                one.page.goto(address + path)
                assert one.page.evaluate(FITS), path
            backgrounds.add(one.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(backgrounds) == 2


def pages_of(queue: rowq.Queue, names: dict[str, str]) -> list[str]:
    """Return the addresses of a page of each kind."""
    orders, reports = names["orders"], names["reports"]
    (dead,) = queue.list_dead(orders, max_messages=1, before_message_id=2**63 - 1)
    return [
        "/", f"/queue?name={orders}", f"/dead?queue={orders}", "/workers", "/schedules",
        f"/message?queue={orders}&id={dead.message_id}",
        f"/schedule?queue={reports}&name=nightly", "/topics", "/health",
    ]  # fmt: skip


@pytest.mark.slow("a browser, and much text", ci=False)
def test_reset_of_5000_dead_messages_shows_progress(
    browser: play.Browser, address: str, make_queue: MakeQueue
) -> None:
    queue = make_queue()
    make_dead(queue, 5_000)
    with window(browser) as one:
        page = one.page
        page.goto(f"{address}/dead?queue={queue.name}")
        seen: list[str] = []
        held: list[play.Route] = []

        def hold(route: play.Route) -> None:
            seen.append(route.request.url)
            if len(seen) == 2:
                held.append(route)
            else:
                route.continue_()

        # The second step waits until the progress of the first step was seen.
        page.route("**/batch", hold)
        page.get_by_role("button", name="Reset all 5,000").click()
        play.expect(page.locator("progress")).to_be_visible()
        play.expect(page.get_by_role("status").last).to_contain_text("1,000 of about 5,000 reset")
        for _ in range(PATIENCE // 50):
            if held:
                break
            page.wait_for_timeout(50)
        held[0].continue_()
        play.expect(page.get_by_role("status").last).to_have_text("5,000 messages reset")
        assert len(seen) == 5
    assert queue.counts() == (5_000, 0, 0, 0)


@pytest.mark.slow("a browser, and much text", ci=False)
def test_discard_asks_for_confirmation(
    browser: play.Browser, address: str, make_queue: MakeQueue
) -> None:
    queue = make_queue()
    make_dead(queue, 4)
    with window(browser) as one:
        page = one.page
        page.goto(f"{address}/dead?queue={queue.name}")
        questions: list[str] = []

        def answer(dialog: play.Dialog) -> None:
            questions.append(dialog.message)
            if len(questions) == 1:
                dialog.dismiss()
            else:
                dialog.accept()

        page.on("dialog", answer)
        page.get_by_label("Select message").first.check()
        page.get_by_role("button", name="Discard selected").click()
        assert queue.counts()[3] == 4
        page.get_by_role("button", name="Discard selected").click()
        play.expect(page.get_by_role("status").last).to_have_text("1 messages discarded")
        page.get_by_label("Select all").check()
        page.get_by_role("button", name="Reset selected").click()
        play.expect(page.get_by_role("status").last).to_have_text("3 messages reset")
        assert len(questions) == 2
    assert queue.counts() == (3, 0, 0, 0)


@pytest.mark.slow("a browser, and much text", ci=False)
def test_page_works_without_script(
    browser: play.Browser, address: str, make_queue: MakeQueue
) -> None:
    queue = make_queue()
    make_dead(queue, 1_200)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/dead?queue={queue.name}")
    page.get_by_role("button", name="Reset all 1,200").click()
    play.expect(page.get_by_role("status").last).to_contain_text("1,000 of about 1,200 reset")
    page.get_by_role("button", name="Continue").click()
    play.expect(page.get_by_role("status").last).to_have_text("1,200 messages reset")
    page.goto(f"{address}/queue?name={queue.name}")
    page.get_by_role("button", name="Pause").click()
    play.expect(page.get_by_text("No deliveries")).to_be_visible()
    context.close()
    assert queue.counts() == (1_200, 0, 0, 0)


@pytest.mark.slow("a browser, and much text", ci=False)
def test_paused_page_receives_no_events(
    browser: play.Browser, address: str, make_queue: MakeQueue
) -> None:
    queue = make_queue()
    with window(browser) as one:
        asked: list[str] = []
        one.page.on("request", lambda request: asked.append(request.url))
        one.page.goto(f"{address}/queue?name={queue.name}")
        one.page.get_by_role("link", name="Pause updates").click()
        play.expect(one.page.get_by_role("link", name="Resume updates")).to_be_visible()
        asked.clear()
        queue.fill(1)
        one.page.wait_for_timeout(1_000)
        assert not [url for url in asked if "/parts/" in url or "/events" in url]
        one.page.get_by_role("link", name="Resume updates").click()
        play.expect(one.page.locator(".counts dd").first).to_have_text("1")
        queue.fill(1)
        play.expect(one.page.locator(".counts dd").first).to_have_text("2")


@pytest.mark.slow("a browser, and much text", ci=False)
def test_script_in_message_does_not_run(
    browser: play.Browser, address: str, make_queue: MakeQueue
) -> None:
    queue = make_queue()
    script = "<script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"
    number = queue.enqueue({script: script}, headers={script: script}).message_id
    (message,) = queue.dequeue_fast(worker_name=script)
    with window(browser) as one:
        one.page.goto(f"{address}/workers")
        queue.fail_now(message.claim_id, error=f"{script}\n{script}")
        for path in (f"/message?queue={queue.name}&id={number}", f"/dead?queue={queue.name}", "/"):
            one.page.goto(address + path)
            assert one.page.evaluate("window.hit === undefined")
