"""Stripes: names, numbers, keys, and the order of polling."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import rowq
from rowq.engines import engine_for_connection
from rowq.messages import QueueStats
from rowq.worker.stripes import (
    Round,
    ServerHealth,
    Stripe,
    StripeStats,
    number_of_key,
    servers_of,
    stripes_of,
)
from tests.engines.base import Connection
from tests.static.sources import ROOT

VECTORS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("keys_of_stripes.json").read_text("utf-8")
)
PAGE = (ROOT / "docs" / "python" / "striped.md").read_text("utf-8")
FORMULAS = {
    "postgres": (
        "('x' || left(encode(sha256(convert_to({key}, 'UTF8')), 'hex'), 8))::bit(32)::bigint"
        " % {stripes}"
    ),
    "mysql": "conv(left(sha2(convert({key} using utf8mb4), 256), 8), 16, 10) % {stripes}",
}
"""The stripe of a key in SQL, by engine, as in docs/python/striped.md."""


def test_stripe_numbers_are_stable_if_stripes_are_added() -> None:
    stripes = stripes_of("orders", 2, ["b", "a"])
    assert [(stripe.number, stripe.server, stripe.queue_name) for stripe in stripes] == [
        (0, "a", "orders/0"),
        (1, "b", "orders/0"),
        (2, "a", "orders/1"),
        (3, "b", "orders/1"),
    ]
    places = {(stripe.server, stripe.queue_name) for stripe in stripes}
    for more in (stripes_of("orders", 3, ["a", "b"]), stripes_of("orders", 2, ["a", "b", "c"])):
        assert places < {(stripe.server, stripe.queue_name) for stripe in more}
    assert str(stripes[3]) == "orders/1 on b"


def test_plain_queue_is_its_only_stripe() -> None:
    (stripe,) = stripes_of("orders", None, servers_of("postgresql://host/db"))
    assert (stripe.number, stripe.server, stripe.queue_name) == (0, None, "orders")


@pytest.mark.parametrize("stripes", [0, -1, 1001, True, 1.5, "8"])
def test_invalid_number_of_stripes_is_refused(stripes: Any) -> None:
    with pytest.raises(rowq.InvalidArgument, match="RQ711 invalid_argument: stripes must be"):
        stripes_of("orders", stripes, [None])


def test_name_too_long_for_the_last_stripe_is_refused() -> None:
    assert stripes_of("q" * 97, 11, [None])[-1].queue_name == "q" * 97 + "/10"
    for name in ("q" * 98, ""):
        with pytest.raises(rowq.InvalidArgument, match="queue_name must be"):
            stripes_of(name, 11, [None])


def test_several_servers_require_stripes() -> None:
    with pytest.raises(rowq.InvalidArgument, match="require stripes"):
        rowq.Worker({"a": "postgresql://host/db"}, "orders", print)
    urls = {"a": "postgresql://host/db", "b": "mariadb://host"}
    with pytest.raises(rowq.EngineUnknown, match="the same engine"):
        rowq.Worker(urls, "orders", print, stripes=1)
    with pytest.raises(rowq.InvalidArgument, match="listen and stripes are mutually exclusive"):
        rowq.Worker("postgresql://host/db", "orders", print, stripes=2, listen=True)
    with pytest.raises(rowq.InvalidArgument, match="first_stripe must be"):
        rowq.Worker("postgresql://host/db", "orders", print, stripes=2, first_stripe=-1)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: ascii(vector["key"]))
def test_key_maps_to_the_documented_stripe(vector: dict[str, Any]) -> None:
    for stripes, number in vector["numbers"].items():
        assert number_of_key(vector["key"], int(stripes)) == number


def test_sql_maps_a_key_to_the_same_stripe(connection: Connection) -> None:
    name = engine_for_connection(connection).name
    if name not in FORMULAS:
        pytest.skip(
            "this engine's formula was run nowhere; to run it: put it into FORMULAS, and have a"
            " server at a URL"
        )
    for vector in VECTORS:
        for stripes, number in vector["numbers"].items():
            formula = FORMULAS[name].format(key="'" + vector["key"] + "'", stripes=stripes)
            ((found,),) = connection.execute(f"select {formula}").fetchall()
            assert int(found) == number, vector


@pytest.mark.parametrize("engine", FORMULAS)
def test_page_has_the_tested_formulas(engine: str) -> None:
    formula = FORMULAS[engine].format(key="key", stripes=8).replace("|", r"\|")
    assert f"`{formula}`" in PAGE


def test_page_has_keys_with_their_stripes() -> None:
    known = {vector["key"]: vector["numbers"] for vector in VECTORS}
    table = PAGE.partition("<!-- keys -->\n")[2].partition("<!-- end of keys")[0]
    head, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()
    )
    assert rows
    for key, *numbers in rows:
        shown = dict(zip((name.removeprefix("of ") for name in head[1:]), numbers, strict=True))
        assert shown.items() <= {n: str(k) for n, k in known[key.strip("`")].items()}.items()


def test_keys_spread_over_stripes() -> None:
    found = Counter(number_of_key(f"order-{number}", 8) for number in range(8000))
    assert set(found) == set(range(8))
    assert max(found.values()) < 1.15 * 1000


def test_consumer_with_first_stripe_starts_there() -> None:
    stripes = stripes_of("q", 4, [None])
    consumer = Round(stripes, first_stripe=6)
    numbers = [stripe.number for stripe in consumer.next()]
    assert numbers == [2, 3, 0, 1]
    consumer.record(stripes[2], is_full=True)
    assert consumer.next()[0].number == 2
    consumer.record(stripes[2], is_full=False)
    assert consumer.next()[0].number == 3
    consumer.record(stripes[3], is_full=True)
    assert consumer.next()[0].number == 2


def test_consumer_without_first_stripe_takes_turns() -> None:
    stripes = stripes_of("q", 4, [None])
    consumer = Round(stripes, first_stripe=None)
    asked = []
    for _ in range(8):
        stripe = consumer.next()[0]
        asked.append(stripe.number)
        consumer.record(stripe, is_full=True)
    assert asked[4:] == asked[:4]
    assert sorted(asked[:4]) == [0, 1, 2, 3]


def test_tenth_round_starts_at_a_random_stripe() -> None:
    stripes = stripes_of("q", 8, [None])
    consumer = Round(stripes, first_stripe=0)
    starts = [consumer.next()[0].number for _ in range(1000)]
    assert set(starts[9::10]) == set(range(8))
    assert {start for number, start in enumerate(starts, 1) if number % 10} == {0}


def test_worker_threads_start_at_consecutive_stripes() -> None:
    def homes(**options: Any) -> int | None:
        worker = rowq.Worker("postgresql://host/db", "q", print, stripes=4, **options)
        return worker._context.first_thread_stripe

    assert homes() is None
    assert homes(threads=3) is None
    assert homes(threads=4) in range(4)
    assert homes(first_stripe=7) == 7
    spread = rowq.Worker("postgresql://host/db", "q", len, stripes=4, processes=2, threads=2)
    assert spread._processes is not None
    first, second = (child._settings.first_stripe for child in spread._processes._children)
    assert first is not None
    assert second == first + 2


def test_unreachable_server_backs_off_and_recovers() -> None:
    server_health = ServerHealth()
    seen = [server_health.is_backing_off]
    server_health.record_failure()
    seen.append(server_health.is_backing_off)
    server_health._retry_at += 3600
    until = server_health._retry_at
    server_health.record_failure()
    assert server_health._retry_at == until
    server_health.record_success()
    seen.append(server_health.is_backing_off)
    assert seen == [False, True, False]


@pytest.mark.parametrize(
    ("counts", "is_drained"),
    [
        ({}, True),
        ({"ready": 1}, False),
        ({"delayed": 1}, False),
        ({"leased": 1}, False),
        ({"blocked": 1}, False),
        ({"dead": 1, "group_after_dead": "continue"}, True),
        ({"dead": 1, "group_after_dead": "hold"}, False),
    ],
)
def test_stripe_is_drained_if_no_key_counts(counts: dict[str, Any], is_drained: bool) -> None:
    none = dict.fromkeys(QueueStats.__dataclass_fields__, 0)
    stats = QueueStats(**(none | counts))
    stripe = Stripe(0, None, "q/0")
    assert StripeStats(stripe, stats, None).is_drained is is_drained
    assert not StripeStats(stripe, None, "no connection").is_drained
