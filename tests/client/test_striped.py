"""Striped queues on one database, and with an unreachable second server."""

import asyncio
import inspect
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

import rowq
from tests.engines.base import Connection, free_port, wait_until
from tests.helpers.dialects import dialect_of
from tests.helpers.workers import running

STRIPES = 4


@pytest.fixture
def striped(connection: Connection, queue_name: str) -> rowq.Striped:
    striped = rowq.Striped(queue_name, STRIPES, rowq.Queue(connection))
    striped.create_queue(backoff_base_seconds=0)
    return striped


@pytest.fixture
def half_away(database_url: str, queue_name: str) -> dict[str, str]:
    """Return the URLs of two servers, of which only "here" is reachable."""
    with rowq.connect_striped(queue_name, STRIPES, {"here": database_url}) as orders:
        orders.create_queue()
    scheme = database_url.partition("://")[0]
    return {"away": f"{scheme}://nobody@127.0.0.1:{free_port()}/none", "here": database_url}


def test_message_is_finished_in_its_stripe(striped: rowq.Striped) -> None:
    sent = {
        striped.enqueue(number, stripe=stripe).stripe
        for number, stripe in enumerate(striped.stripes)
    }
    assert sent == set(striped.stripes)
    messages = striped.dequeue_fast(10)
    assert sorted(message.data for message in messages) == list(range(STRIPES))
    assert len({message.claim for message in messages}) == STRIPES
    first, second, third, last = messages
    assert striped.extend_lease(first.claim, lease_seconds=60).claim_id == first.claim_id
    assert [one.outcome for one in striped.complete(first.claim)] == ["completed"]
    assert [one.outcome for one in striped.retry_later(second.claim, delay_seconds=900)] == [
        "retrying"
    ]
    assert [one.outcome for one in striped.fail_now(third.claim, error="no")] == ["dead"]
    assert [one.outcome for one in striped.release(last.claim)] == ["released"]
    places = {one.stripe: one.stats for one in striped.queue_stats() if one.stats}
    assert [
        (places[one.stripe].ready, places[one.stripe].delayed, places[one.stripe].dead)
        for one in messages
    ] == [(0, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)]


def test_messages_without_keys_use_the_own_stripe(striped: rowq.Striped) -> None:
    placed = [striped.enqueue(number) for number in range(5)]
    placed += striped.enqueue_batch(range(5))
    assert len({one.stripe for one in placed}) == 1
    homes = {
        rowq.Striped(striped.stripes[0].queue_name.partition("/")[0], 64, striped.queue_of(stripe))
        ._own[0]
        .number
        for stripe in striped.stripes
        for _ in range(8)
    }
    assert len(homes) > 1


@pytest.mark.promise("P12")
def test_dedup_key_counts_for_all_producers(
    striped: rowq.Striped, connection: Connection, queue_name: str
) -> None:
    other = rowq.Striped(queue_name, STRIPES, rowq.Queue(connection))
    for number in range(8):
        first = striped.enqueue(number, dedup_key=f"order-{number}")
        (again,) = other.enqueue_batch([rowq.NewMessage(data=0, dedup_key=f"order-{number}")])
        assert (again.stripe, again.message_id) == (first.stripe, first.message_id)
        assert (first.outcome, again.outcome) == ("enqueued", "duplicate")
        found = other.find_message(f"order-{number}")
        assert found is not None
        assert found.message_id == first.message_id
    assert {striped.stripe_of_key(f"order-{number}") for number in range(64)} == set(
        striped.stripes
    )


@pytest.mark.requires("groups")
@pytest.mark.promise("P21")
def test_group_keeps_its_order_in_one_stripe(
    striped: rowq.Striped,
) -> None:
    messages = [
        rowq.NewMessage(data=step, group_key=f"order-{order}", dedup_key=f"{order}-{step}")
        for step in range(3)
        for order in range(6)
    ]
    placed = striped.enqueue_batch(messages)
    stripes = {
        (message.group_key, one.stripe) for message, one in zip(messages, placed, strict=True)
    }
    assert len(stripes) == 6
    assert striped.find_message("2-1", group_key="order-2") is not None
    seen: dict[rowq.Stripe, list[int]] = {}
    delivered: list[tuple[int, int]] = []
    while found := striped.dequeue_fast(20):
        for message in found:
            step = message.data
            delivered.append((step, message.message_id))
            seen.setdefault(message.stripe, []).append(step)
            striped.complete(message.claim, [message.message_id])
    assert len(delivered) == len(messages)
    ids = [{one.message_id for one in placed[step * 6 : step * 6 + 6]} for step in range(3)]
    for step, message_id in delivered:
        assert message_id in ids[step]
    for steps in seen.values():
        assert steps == sorted(steps)


@pytest.mark.promise("P05")
def test_order_holds_within_a_stripe_only(striped: rowq.Striped) -> None:
    first, second, *_ = striped.stripes
    low = striped.enqueue("low", priority=9, stripe=first)
    high = striped.enqueue("high", priority=0, stripe=second)
    better = striped.enqueue("better", priority=0, stripe=first)
    consumer = rowq.Striped(
        first.queue_name.partition("/")[0], STRIPES, striped.queue_of(first), first_stripe=0
    )
    ids = [(one.stripe, one.message_id) for one in consumer.dequeue_fast(3)]
    assert ids == [(one.stripe, one.message_id) for one in (better, low, high)]


@pytest.mark.promise("P18")
def test_pause_resume_and_drop_apply_to_all_stripes(striped: rowq.Striped) -> None:
    striped.enqueue(1)
    assert {one.outcome for one in striped.pause_queue()} == {"paused"}
    assert striped.dequeue_fast() == []
    assert {one.outcome for one in striped.resume_queue()} == {"resumed"}
    assert len(striped.dequeue_fast()) == 1
    assert {one.outcome for one in striped.drop_queue(force=True)} == {"dropped"}
    with pytest.raises(rowq.QueueNotFound):
        striped.enqueue(1)


@pytest.mark.requires("limits")
@pytest.mark.promise("P28", "P29")
@pytest.mark.parametrize("limit", [{"max_leased": 2}, {"rate_limit": 2, "rate_seconds": 3600}])
def test_limits_apply_per_stripe(striped: rowq.Striped, limit: Any) -> None:
    striped.alter_queue(**limit)
    for stripe in striped.stripes:
        striped.enqueue_batch(range(3), stripe=stripe)
    assert len(striped.dequeue_fast(100)) == 2 * STRIPES
    assert striped.dequeue_fast(100) == []


@pytest.mark.promise("P01")
def test_striped_enqueue_shares_callers_transaction(
    connect: Callable[..., Connection], queue_name: str
) -> None:
    with closing(connect()) as own:
        striped = rowq.Striped(queue_name, STRIPES, rowq.Queue(own))
        striped.create_queue()
        dialect = dialect_of(own)
        dialect.begin(own)
        striped.enqueue_batch([1, rowq.NewMessage(data=2, dedup_key="a"), 3])
        striped.enqueue(4, dedup_key="b")
        own.execute("rollback")
        assert striped.undrained() == []


@pytest.mark.promise("P09")
def test_released_message_is_first_in_its_stripe(striped: rowq.Striped) -> None:
    first, second, *_ = striped.stripes
    sent = [striped.enqueue(number, stripe=first).message_id for number in range(3)]
    striped.enqueue(3, stripe=second)
    consumer = rowq.Striped(
        first.queue_name.partition("/")[0], STRIPES, striped.queue_of(first), first_stripe=0
    )
    (message,) = consumer.dequeue_fast()
    consumer.release(message.claim)
    again = consumer.dequeue_fast(10)
    assert [one.message_id for one in again if one.stripe == first] == sent


@pytest.mark.requires("predecessors")
@pytest.mark.promise("P25")
def test_message_waits_for_predecessors_of_its_stripe(striped: rowq.Striped) -> None:
    stripe = striped.stripes[1]
    placed = striped.enqueue_batch(
        [1, rowq.NewMessage(data=2, predecessor_positions=[1])], stripe=stripe
    )
    last = striped.enqueue(3, predecessor_ids=[placed[1].message_id], stripe=stripe)
    done = []
    while found := striped.dequeue_fast(10):
        for message in found:
            assert message.stripe == stripe
            done.append(message.message_id)
            striped.complete(message.claim, [message.message_id])
    assert done == [*(one.message_id for one in placed), last.message_id]


@pytest.mark.requires("topics")
@pytest.mark.promise("P30", "P35")
def test_schedule_and_topic_belong_to_one_stripe(striped: rowq.Striped, queue_name: str) -> None:
    stripe = striped.stripes[2]
    queue = striped.queue_of(stripe)
    topic = f"striped.{queue_name.translate({ord(one): '_' for one in ' /[].:'})}"
    queue.bind_topic(stripe.queue_name, topic)
    queue.create_schedule(stripe.queue_name, "nightly", 2, cron="0 3 * * *")
    queue.run_schedule(stripe.queue_name, "nightly")
    assert [one.queue_name for one in queue.publish(topic, 1)] == [stripe.queue_name]
    found = striped.dequeue_fast(10)
    assert [(one.stripe, one.data) for one in found] == [(stripe, 2), (stripe, 1)]


def test_stripes_may_grow_when_undrained_is_empty(striped: rowq.Striped) -> None:
    sent = striped.enqueue(1, dedup_key="order-7")
    assert [one.stripe for one in striped.undrained()] == [sent.stripe]
    (message,) = striped.dequeue_fast()
    assert [one.stripe for one in striped.undrained()] == [sent.stripe]
    striped.complete(message.claim)
    assert striped.undrained() == []


def test_create_queue_adds_missing_stripes(
    striped: rowq.Striped, connection: Connection, queue_name: str
) -> None:
    sent = striped.enqueue("old")
    more = rowq.Striped(queue_name, 2 * STRIPES, rowq.Queue(connection))
    assert Counter(one.outcome for one in more.create_queue()) == {
        "exists": STRIPES,
        "created": STRIPES,
    }
    (found,) = more.dequeue_fast()
    assert (found.stripe.queue_name, found.message_id) == (sent.stripe.queue_name, sent.message_id)


def test_predecessors_require_a_stripe(striped: rowq.Striped) -> None:
    with pytest.raises(rowq.InvalidArgument, match="stripe: message ids are unique"):
        striped.enqueue(1, predecessor_ids=[1])
    with pytest.raises(rowq.InvalidArgument, match="stripe: message ids are unique"):
        striped.enqueue_batch([1, rowq.NewMessage(data=2, predecessor_positions=[1])])


@pytest.mark.parametrize(
    "call",
    [
        lambda striped: striped.enqueue_batch({"id": 1}),
        lambda striped: striped.enqueue_batch("text"),
        lambda striped: striped.dequeue_fast(0),
        lambda striped: striped.dequeue_fast("ten"),
        lambda striped: striped.dequeue_fast(None),
        lambda striped: striped.dequeue_wait(wait_seconds=-1),
        lambda striped: striped.dequeue_wait(wait_seconds=float("nan")),
        lambda striped: striped.enqueue(1, dedup_key=7),
    ],
)
def test_invalid_striped_arguments_are_refused(
    striped: rowq.Striped, call: Callable[[rowq.Striped], object]
) -> None:
    with pytest.raises(rowq.InvalidArgument):
        call(striped)


def test_batch_with_keys_is_atomic_per_stripe(striped: rowq.Striped) -> None:
    (first, *_, last) = striped.stripes
    keys = {striped.stripe_of_key(str(key)): str(key) for key in range(64)}
    good = rowq.NewMessage(data=1, dedup_key=keys[first])
    bad = rowq.NewMessage(data=2, dedup_key=keys[last], priority=77)
    with pytest.raises(rowq.InvalidArgument):
        striped.enqueue_batch([good, bad])
    assert [one.stripe for one in striped.undrained()] == [first]


def test_dequeue_wait_polls_other_stripes_between_waits(
    database_url: str, queue_name: str, striped: rowq.Striped
) -> None:
    with rowq.connect_striped(queue_name, STRIPES, database_url) as waiting:
        assert waiting.dequeue_wait(wait_seconds=0.01) == []
        found: list[rowq.StripedMessage] = []
        thread = threading.Thread(
            target=lambda: found.extend(waiting.dequeue_wait(5, wait_seconds=60))
        )
        thread.start()
        sent = striped.enqueue("later")
        thread.join(60)
        assert [(one.stripe, one.message_id) for one in found] == [(sent.stripe, sent.message_id)]


def test_maintain_and_health_cover_all_stripes(striped: rowq.Striped) -> None:
    names = [stripe.queue_name for stripe in striped.stripes]
    assert [one.queue_name for one in striped.maintain()] == names
    found = {one.check.queue_name for one in striped.health()}
    assert found >= set(names)


def test_unreachable_server_loses_no_message(half_away: dict[str, str], queue_name: str) -> None:
    for _ in range(4):
        with rowq.connect_striped(queue_name, STRIPES, half_away) as orders:
            assert orders.enqueue(1).stripe.server == "here"
    with rowq.connect_striped(queue_name, STRIPES, half_away, reconnect_seconds=0) as orders:
        assert len(orders.dequeue_fast(10)) == 4
        silent = [one for one in orders.health() if one.check.check_name == "server_answers"]
        assert [(one.server, one.check.status) for one in silent] == [("away", "critical")]
        found = orders.queue_stats()
        assert {one.stripe.server for one in found if one.error} == {"away"}
        assert {one.stripe.server for one in found if one.stats} == {"here"}
        assert {one.stripe.server for one in orders.undrained()} == {"away", "here"}
        with pytest.raises(rowq.ConnectionLost):
            orders.maintain()
        key = next(
            str(number)
            for number in range(100)
            if orders.stripe_of_key(str(number)).server == "away"
        )
        with pytest.raises(rowq.ConnectionLost) as lost:
            orders.enqueue(1, dedup_key=key)
        assert not lost.value.is_unknown


def test_connect_fails_if_no_server_is_reachable(
    half_away: dict[str, str], queue_name: str
) -> None:
    with pytest.raises(rowq.CannotConnect):
        rowq.connect_striped(queue_name, STRIPES, half_away["away"])
    worker = rowq.Worker(
        {"a": half_away["away"], "b": half_away["away"]}, queue_name, print, stripes=1
    )
    with pytest.raises(rowq.WorkerFailed):
        worker.run()


def test_worker_uses_reachable_servers(half_away: dict[str, str], queue_name: str) -> None:
    done: list[tuple[rowq.Stripe, int]] = []
    worker = rowq.Worker(
        half_away,
        queue_name,
        lambda message: done.append((message.stripe, message.message_id)),
        stripes=STRIPES,
    )
    with rowq.connect_striped(queue_name, STRIPES, half_away) as orders, running(worker):
        sent = {(one.stripe, one.message_id) for one in orders.enqueue_batch(range(50))}
        wait_until(lambda: set(done) == sent, "all is done", seconds=60)


@pytest.mark.parametrize("options", [{}, {"threads": STRIPES}, {"transactional": True}])
def test_worker_drains_all_stripes(
    striped: rowq.Striped, database_url: str, queue_name: str, options: dict[str, object]
) -> None:
    sent = Counter(
        (one.stripe, one.message_id)
        for stripe in striped.stripes
        for one in striped.enqueue_batch(range(30), stripe=stripe)
    )
    done: Counter[tuple[rowq.Stripe, int]] = Counter()

    def handle(message: rowq.HeldMessage, *_: object) -> None:
        done[message.stripe, message.message_id] += 1

    worker = rowq.Worker(
        database_url,
        queue_name,
        handle,
        stripes=STRIPES,
        drain=True,
        **options,  # type: ignore[arg-type]
    )
    assert worker.run().processed == 30 * STRIPES
    assert done == sent
    assert striped.undrained() == []


@pytest.mark.requires("async")
def test_async_striped_makes_the_same_calls(database_url: str, queue_name: str) -> None:
    async def life() -> None:
        async with rowq.connect_striped_async(queue_name, STRIPES, database_url) as orders:
            await orders.create_queue()
            placed = await orders.enqueue_batch([1, rowq.NewMessage(data=2, dedup_key="a")])
            found = await orders.dequeue_fast(5)
            assert {(one.stripe, one.message_id) for one in found} == {
                (one.stripe, one.message_id) for one in placed
            }
            for message in found:
                await orders.complete(message.claim, [message.message_id])
            assert await orders.undrained() == []
            assert await orders.dequeue_wait(wait_seconds=0.01) == []
            assert len(await orders.queue_stats()) == STRIPES

    asyncio.run(life())


def test_striped_methods_have_the_queues_parameters() -> None:
    own = set(inspect.signature(rowq.Striped.enqueue).parameters)
    assert own - {"stripe"} == set(inspect.signature(rowq.Queue.enqueue).parameters) - {
        "queue_name"
    }
    for name in ("complete", "retry_later", "fail_now", "release", "extend_lease"):
        own = set(inspect.signature(getattr(rowq.Striped, name)).parameters) - {"claim"}
        queue = set(inspect.signature(getattr(rowq.Queue, name)).parameters)
        assert own == queue - {"queue_name", "claim_id"}
