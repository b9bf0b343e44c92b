"""A text that no client can read is refused everywhere, so it blocks no batch."""

import pymysql
import pytest

from tests.engines.base import Connection
from tests.engines.mysql.accounts import Accounts
from tests.helpers.calls import bodies, call, dequeue, dequeue_one, enqueue

HALVES = ("_utf8mb4 x'41EDA08042'", "_ucs2 x'0041D83D'", "_utf32 x'0000DFFF'")
"""Half of a surrogate pair, which MariaDB accepts as UTF-8 and Python does not."""

REFUSED = r"unpaired surrogate|Invalid.*character|Incorrect string value|Cannot convert string"


def _nulls(count: int) -> str:
    return ", null" * count


PRODUCER = [
    f"enqueue('{{queue}}', {{text}}{_nulls(13)})",
    f"enqueue('{{queue}}', 'a', null, {{text}}{_nulls(11)})",
    f"enqueue('{{queue}}', 'a'{_nulls(2)}, concat('{{{{\"a\":\"', {{text}}, '\"}}}}'){_nulls(10)})",
    f"enqueue('{{queue}}', 'a'{_nulls(6)}, {{text}}{_nulls(6)})",
    f"enqueue('{{queue}}', 'a'{_nulls(8)}, {{text}}{_nulls(4)})",
    "enqueue_batch('{queue}', concat('[{{\"body\":\"', {text}, '\"}}]'))",
    'enqueue_batch(\'{queue}\', concat(\'[{{"body":"a", "dedup_key":"\', {text}, \'"}}]\'))',
]
CONSUMER = [
    "dequeue_fast('{queue}', 1, {text}, null)",
    "dequeue_wait('{queue}', 1, {text}, null, 0)",
    "retry_later('{queue}', {claim}, null, null, {text})",
    "fail_now('{queue}', {claim}, null, {text})",
]


def refused(session: Connection, words: str, **places: object) -> None:
    """Check that a call is refused in each spelling of the half pair."""
    for text in HALVES:
        # MySQL refuses these with errors that depend on the text's use.
        with pytest.raises(pymysql.Error, match=REFUSED):
            session.execute(f"call rowq.{words.format(text=text, **places)}")


@pytest.mark.promise("P06", "P15", "P20")
def test_producer_cannot_enqueue_an_unreadable_text(
    connection: Connection, users: Accounts, queue: str
) -> None:
    enqueue(connection, queue, "good")
    for words in PRODUCER:
        refused(users["producer"], words, queue=queue)
    assert bodies(dequeue(connection, queue, 10)) == ["good"]


@pytest.mark.promise("P06", "P15", "P20")
def test_consumer_cannot_store_an_unreadable_text(
    connection: Connection, users: Accounts, queue: str
) -> None:
    enqueue(connection, queue, "1", "2")
    claim = dequeue_one(connection, queue).claim_id
    for words in CONSUMER:
        refused(users["consumer"], words, queue=queue, claim=claim)
    call(connection, "complete", queue_name=queue, claim_id=claim)
    assert bodies(dequeue(connection, queue, 10)) == ["2"]


def test_queue_name_cannot_be_unreadable(users: Accounts) -> None:
    words = f"create_queue({{text}}{', null' * 16})"
    refused(users["admin"], words)
    call(users["admin"], "queue_stats")


@pytest.mark.promise("P20")
def test_texts_near_surrogates_round_trip(connection: Connection, queue: str) -> None:
    # Korean texts begin with the same byte as half surrogate pairs.
    texts = ["한국어 \ud7a3", "힘\ue000\ufeff\ufffe\0 \U0001f418", "한" * 400_000]
    enqueue(connection, queue, *texts)
    call(
        connection,
        "enqueue_batch",
        queue_name=queue,
        messages=[{"body": text, "headers": {"a": text[:9]}} for text in texts],
    )
    rows = dequeue(connection, queue, 10, worker_name=texts[0])
    assert bodies(rows) == texts * 2
    call(connection, "retry_later", queue_name=queue, claim_id=rows[0].claim_id, error=texts[1])
