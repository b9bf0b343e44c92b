"""Limits of headers: every engine stores them, and every JSON parser accepts them."""

import json

import pytest

from tests.engines.base import Server
from tests.helpers.json_text import JsonText
from tests.helpers.queues import CheckedQueue


def nested(depth: int, *, of: str = "objects") -> str:
    """Return an object of this depth, including the number inside."""
    start, end = ('{"a": ', "}") if of == "objects" else ("[", "]")
    inner = start * (depth - 2) + "1" + end * (depth - 2)
    return f'{{"a": {inner}}}'


REFUSED = {
    "objects": nested(21),
    "arrays": nested(21, of="arrays"),
    "an empty array inside": nested(21, of="arrays").replace("1", "[]"),
    "a text inside": nested(21).replace("1", '"x"'),
    "very deep": nested(3000),
    # SQL Server parses 128 levels, and the headers inside an object inside an array.
    **{f"{depth} deep": nested(depth) for depth in range(124, 132)},
    "a large exponent": '{"n": 1e5000}',
    "a large exponent with a sign": '{"a": [{"n": -1.5E+301}]}',
    "a small exponent": '{"n": 1e-5000}',
    "many digits": '{"n": ' + "1" * 5000 + "}",
    "many digits after the point": '{"n": 0.' + "1" * 5000 + "}",
    "after a text with a quote": '{"t": "\\"\\\\", "n": 1e5000}',
}

ROUNDED = [REFUSED["a small exponent"], REFUSED["many digits after the point"]]


@pytest.mark.promise("P15")
@pytest.mark.parametrize("headers", REFUSED.values(), ids=REFUSED)
def test_enqueue_refuses_headers_beyond_the_limits(
    queue: CheckedQueue, server: Server, headers: str
) -> None:
    assert "headers" in queue.refused("RQ711", "enqueue", body="a", headers=JsonText(headers))
    batch = JsonText(f'[{{"body": "a"}}, {{"headers": {headers}}}]')
    if server.product == "mysql" and headers in ROUNDED:
        # MySQL's JSON type has converted it to a double, which every parser accepts.
        queue.call("enqueue_batch", messages=batch)
        _, row = queue.dequeue(2)
        assert row.headers["n"] == json.loads(headers)["n"]
        return
    queue.refused("RQ711", "enqueue_batch", messages=batch)
    assert queue.counts() == (0, 0, 0, 0)


TAKEN = {
    "objects": nested(20),
    "arrays": nested(20, of="arrays"),
    "an empty array inside": nested(20, of="arrays").replace("1", "[]"),
    "side by side": json.dumps({str(number): [[number]] for number in range(100)}),
    "texts like numbers": json.dumps(
        {"a": "1e5000", "b": "1" * 5000, "c": '\\"1e5000', "9e999": 1}
    ),
    "texts like brackets": json.dumps({"a": "[" * 100, "{" * 100: '"{'}),
    "escapes": json.dumps({"a": '1e999\\"' * 5000}),
    "an emoji": json.dumps({"🐘": "🐘"}, ensure_ascii=False),
    # An emoji is 2 UTF-16 units: in one of these texts, pieces of an even length split an emoji.
    "many emoji": json.dumps({"a": "🐘" * 20_000}, ensure_ascii=False),
    "many emoji, one further": json.dumps({"ab": "🐘" * 20_000}, ensure_ascii=False),
    "65536 characters": json.dumps({"a": "🐘" * 65_527}, ensure_ascii=False),
}


@pytest.mark.promise("P20")
@pytest.mark.parametrize("headers", TAKEN.values(), ids=TAKEN)
def test_headers_at_the_limits_are_returned_by_every_routine(
    queue: CheckedQueue, elsewhere: CheckedQueue, headers: str
) -> None:
    wanted = json.loads(headers)
    queue.call_one("enqueue", headers=JsonText(headers))
    batch = JsonText(f'[{{"headers": {headers}}}]')
    queue.call("enqueue_batch", messages=batch)
    for shown in queue.call("peek", max_messages=2):
        assert shown.headers == wanted
    row = queue.dequeue_one()
    assert row.headers == wanted
    assert queue.message(row.message_id).headers == wanted
    [waited] = elsewhere.call_one("dequeue_wait", wait_seconds=0).messages
    assert waited["headers"] == wanted


NUMBERS = ["9" * 100, "-" + "9" * 100, "0." + "9" * 99, "1e200", "-1.25E+0200", "1e-200"]


@pytest.mark.promise("P20")
@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:12])
def test_numbers_at_the_limits_are_returned_by_every_routine(
    queue: CheckedQueue, elsewhere: CheckedQueue, server: Server, number: str
) -> None:
    headers = JsonText(f'{{"n": [{number}]}}')
    queue.call_one("enqueue", headers=headers)
    batch = JsonText(f'[{{"headers": {headers}}}]')
    queue.call("enqueue_batch", messages=batch)
    row = queue.dequeue_one()
    [waited] = elsewhere.call_one("dequeue_wait", wait_seconds=0).messages
    # MySQL's JSON type converts integers beyond 64 bits to doubles.
    if number.lstrip("-").isdigit() and server.product != "mysql":
        assert row.headers["n"][0] == waited["headers"]["n"][0] == int(number)
    assert float(row.headers["n"][0]) == float(waited["headers"]["n"][0]) == float(number)
