"""Celery workers with rowq as their broker."""

import signal
from datetime import UTC, datetime, timedelta

import pytest

from tests.celery.conftest import Shop
from tests.client.proxy import relay

pytestmark = pytest.mark.slow("Celery's own workers, killed and stopped")


def test_tasks_run_retry_and_wait(shop: Shop) -> None:
    """With prefork, children send retries, and the parent acknowledges in another thread."""
    late = shop.send("say", "much later", eta=datetime.now(UTC) + timedelta(hours=1))
    soon = shop.send("add", 3, 4, countdown=0.2)
    sums = [shop.send("add", number, number) for number in range(20)]
    failing, requeued = shop.send("fail_twice"), shop.send("requeue_once")
    shop.send("refuse")
    shop.send("nobody_knows")
    worker = shop.work("-P", "prefork", "-c", "2", "--max-tasks-per-child", "5")
    assert [shop.result(one) for one in sums] == [2 * number for number in range(20)]
    assert shop.result(soon) == 7
    assert shop.result(failing) == 2
    assert shop.result(requeued) == "redelivered"
    shop.until(
        lambda: shop.counts() == (0, 1, 0, 2), "two are dead, one is delayed, all else ended"
    )
    dead = shop.rowq.list_dead(shop.queue_name)
    names = {f"tests.celery.shop.{name}" for name in ("refuse", "nobody_knows")}
    assert {message.message_type for message in dead} == names
    (delayed,) = shop.rowq.list_delayed(shop.queue_name)
    message = shop.rowq.get_message(shop.queue_name, delayed.message_id)
    assert message is not None
    assert message.data["headers"]["id"] == late.id
    assert shop.stop(worker) == 0
    assert shop.counts() == (0, 1, 0, 2)
    log = shop.log.read_text(encoding="utf-8")
    assert log.count("rowq has no fanout") == 1


def test_leases_are_extended_and_stop_releases(shop: Shop) -> None:
    """Celery delays two tasks by their rate limit while another one runs."""
    shop.rowq.alter_queue(shop.queue_name, lease_seconds=10)
    worker = shop.work("-P", "threads", "-c", "2", "--prefetch-multiplier", "4")
    shop.send("hold_late", "at work")
    for _ in range(3):
        shop.send("say_seldom", "seldom")
    shop.wait_for("at work began", "seldom")
    shop.until(lambda: shop.counts() == (0, 0, 3, 0), "all are leased but one that is done")
    before = {claim.claim_id: claim.lease_until for claim in shop.claims()}
    shop.until(
        lambda: all(claim.lease_until > before[claim.claim_id] for claim in shop.claims()),
        "every lease is extended",
    )
    worker.terminate()
    shop.let_end("at work")
    assert worker.wait(60) == 0
    assert sorted(shop.done()) == ["at work began", "at work ended", "seldom"]
    assert shop.counts() == (2, 0, 0, 0)


def test_killed_worker_loses_no_late_ack_task(shop: Shop) -> None:
    """A task acknowledged early, Celery's default, is lost with its worker."""
    shop.rowq.alter_queue(shop.queue_name, lease_seconds=5)
    killed = shop.work("-P", "threads", "-c", "2")
    shop.send("hold_late", "late")
    shop.send("hold_early", "early")
    shop.wait_for("late began", "early began")
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert shop.counts() == (0, 0, 1, 0)
    shop.let_end("late")
    worker = shop.work("-P", "solo")
    shop.wait_for("late ended")
    shop.until(lambda: shop.counts() == (0, 0, 0, 0), "all ended")
    assert shop.done().count("late began") == 2
    assert shop.done().count("early began") == 1
    assert "early ended" not in shop.done()
    assert shop.stop(worker) == 0


def test_worker_survives_a_lost_connection(shop: Shop) -> None:
    with relay(shop.url) as lossy:
        worker = shop.work("-P", "threads", "-c", "1", url=lossy.url)
        shop.send("hold_late", "first")
        shop.wait_for("first began")
        lossy.refuse(connections=True)
        lossy.cut()
        shop.until(
            lambda: "Connection to broker lost" in shop.log.read_text(encoding="utf-8"),
            "a logged connection loss",
        )
        lossy.calm()
        shop.let_end("first")
        shop.wait_for("first ended")
        assert shop.result(shop.send("add", 1, 2)) == 3
        shop.until(lambda: shop.counts() == (0, 0, 0, 0), "all ended")
        assert shop.done().count("first began") == 1
        assert shop.stop(worker) == 0
