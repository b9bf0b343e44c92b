"""Binding, unbinding and dropping queues while other sessions publish."""

from collections.abc import Callable
from typing import Any

import pytest

from rowq import NewMessage, Queue, QueueBusy, QueueNotFound
from rowq.engines import engine_for_connection
from tests.helpers.topics import word
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import SECONDS, Session
from tests.interleavings.test_admin import start_to_drop
from tests.interleavings.work import each_ending, everything

__all__ = ["word"]

pytestmark = pytest.mark.requires("topics")


def publishing(topic: str, **arguments: Any) -> Callable[[Queue], list[str]]:
    """Return a call that publishes and returns the queues that received a message."""

    def call(own: Queue) -> list[str]:
        rows = own.publish(topic, 0, **arguments)
        return [row.queue_name for row in rows if row.outcome == "enqueued"]

    return call


def publishing_a_batch(topic: str) -> Callable[[Queue], list[str]]:
    """Return the same call with publish_batch."""

    def call(own: Queue) -> list[str]:
        return [row.queue_name for row in own.publish_batch([NewMessage(data=0, topic=topic)])]

    return call


each_way = pytest.mark.parametrize("way", [publishing, publishing_a_batch])


@pytest.fixture
def pair(sessions: Open, queue: str, word: str) -> tuple[str, str]:
    """Return the names of two queues, in order, that are bound to the topic `word`."""
    (admin,) = sessions(1)
    other = f"{queue} other"
    admin.queue.create_queue(other)
    for name in (queue, other):
        admin.queue.bind_topic(name, word)
    return queue, other


def found(session: Session, *queues: str) -> list[int]:
    """Return the number of messages of each queue."""
    return [len(everything(session, name)) for name in queues]


@pytest.mark.promise("P35")
@each_ending
def test_binding_takes_effect_at_commit_without_waiting(
    sessions: Open, queue: str, word: str, ending: str
) -> None:
    admin, producer = sessions(2)
    admin.begin().queue.bind_topic(queue, word)
    assert publishing(word)(producer.queue) == []
    admin.end(ending)
    bound = [queue] if ending == "commit" else []
    assert publishing(word)(producer.queue) == bound
    assert found(producer, queue) == [len(bound)]


@pytest.mark.promise("P35")
@each_ending
def test_unbinding_takes_effect_at_commit(
    sessions: Open, queue: str, word: str, ending: str
) -> None:
    admin, producer = sessions(2)
    producer.queue.bind_topic(queue, word)
    admin.begin().queue.unbind_topic(queue, word)
    assert publishing(word)(producer.queue) == [queue]
    admin.end(ending)
    assert publishing(word)(producer.queue) == ([] if ending == "commit" else [queue])


@pytest.mark.promise("P35")
def test_open_publish_blocks_no_bind_unbind_or_publish(
    sessions: Open, pair: tuple[str, str], word: str
) -> None:
    slow, admin, producer = sessions(3)
    assert publishing(word)(slow.begin().queue) == [*pair]
    assert admin.queue.unbind_topic(pair[0], word).outcome == "unbound"
    assert admin.queue.bind_topic(pair[0], f"{word}.#").outcome == "bound"
    assert publishing(word)(producer.queue) == [*pair]
    assert found(admin, *pair) == [1, 1]
    slow.rollback()


@pytest.mark.promise("P01", "P35")
@each_ending
@each_way
def test_publish_is_atomic_across_queues(
    sessions: Open, pair: tuple[str, str], word: str, ending: str, way: Any
) -> None:
    producer, consumer = sessions(2)
    assert way(word)(producer.begin().queue) == [*pair]
    assert found(consumer, *pair) == [0, 0]
    producer.end(ending)
    consumer.queue.maintain()
    assert found(consumer, *pair) == ([1, 1] if ending == "commit" else [0, 0])


@pytest.mark.pitfall("sqlserver 32")
@pytest.mark.promise("P15", "P35")
@each_ending
@each_way
@pytest.mark.parametrize("index", [0, 1])
def test_publish_waits_for_an_open_drop_queue(
    sessions: Open, pair: tuple[str, str], word: str, ending: str, way: Any, index: int
) -> None:
    admin, producer, consumer = sessions(3)
    admin.begin().queue.drop_queue(pair[index])
    sending = producer.start(way(word))
    sending.waits_for(admin)
    admin.end(ending)
    left = [name for name in pair if ending == "rollback" or name != pair[index]]
    assert sending.result() == left
    assert found(consumer, *left) == [1] * len(left)
    bound = [row for row in consumer.queue.list_topics() if row.topic_pattern == word]
    assert [row.queue_name for row in bound] == left


@pytest.mark.promise("P15", "P35")
@each_way
def test_publish_skips_a_queue_dropped_since_the_snapshot(
    sessions: Open, pair: tuple[str, str], word: str, way: Any
) -> None:
    """PostgreSQL and Oracle raise a serialization error instead."""
    admin, producer = sessions(2)
    producer.begin("repeatable read").queue.list_topics()
    admin.queue.drop_queue(pair[0])
    sending = producer.start(way(word))
    error = sending.future.exception(SECONDS)
    producer.end("rollback" if error else "commit")
    if error is None:
        assert sending.result() == [pair[1]]
    else:
        assert isinstance(error, Exception)
        assert engine_for_connection(producer.connection).is_rolled_back(error)
    assert found(admin, pair[1]) == [0 if error else 1]


@pytest.mark.promise("P01", "P35")
@each_ending
@each_way
@pytest.mark.parametrize("index", [0, 1])
def test_drop_queue_is_refused_during_an_open_publish(
    sessions: Open, pair: tuple[str, str], word: str, ending: str, way: Any, index: int
) -> None:
    producer, admin = sessions(2)
    way(word)(producer.begin().queue)
    dropping = start_to_drop(admin, producer, pair[index])
    with pytest.raises(QueueBusy):
        dropping.result()
    producer.end(ending)
    assert found(admin, *pair) == ([1, 1] if ending == "commit" else [0, 0])
    assert admin.queue.drop_queue(pair[index], force=True).outcome == "dropped"
    assert publishing(word)(producer.queue) == [pair[1 - index]]


@pytest.mark.promise("P15", "P35")
@each_ending
@pytest.mark.parametrize("routine", ["bind_topic", "unbind_topic"])
def test_bind_and_unbind_wait_for_an_open_drop_queue(
    sessions: Open, pair: tuple[str, str], word: str, ending: str, routine: str
) -> None:
    admin, other = sessions(2)
    admin.begin().queue.drop_queue(pair[0])
    calling = other.start(lambda own: getattr(own, routine)(pair[0], f"{word}.#"))
    calling.waits_for(admin)
    admin.end(ending)
    if ending == "commit":
        with pytest.raises(QueueNotFound):
            calling.result()
    else:
        assert calling.result().outcome in {"bound", "not_bound"}


@pytest.mark.promise("P15", "P35")
@pytest.mark.parametrize("routine", ["bind_topic", "unbind_topic"])
def test_drop_queue_is_refused_during_an_open_bind_or_unbind(
    sessions: Open, pair: tuple[str, str], word: str, routine: str
) -> None:
    other, admin = sessions(2)
    getattr(other.begin().queue, routine)(pair[0], word)
    with pytest.raises(QueueBusy):
        admin.queue.drop_queue(pair[0])
    other.commit()
    assert admin.queue.drop_queue(pair[0]).outcome == "dropped"


@pytest.mark.promise("P35")
@each_ending
def test_second_bind_of_a_pattern_waits_for_the_first(
    sessions: Open, queue: str, word: str, ending: str
) -> None:
    first, second = sessions(2)
    assert first.begin().queue.bind_topic(queue, word).outcome == "bound"
    binding = second.start(lambda own: own.bind_topic(queue, word))
    binding.waits_for(first)
    first.end(ending)
    assert binding.result().outcome == ("exists" if ending == "commit" else "bound")
    assert publishing(word)(second.queue) == [queue]


@pytest.mark.promise("P12", "P35")
@each_ending
def test_second_publish_of_a_dedup_key_waits_for_the_first(
    sessions: Open, pair: tuple[str, str], word: str, ending: str
) -> None:
    first, second, consumer = sessions(3)
    assert publishing(word, dedup_key="key")(first.begin().queue) == [*pair]
    sending = second.start(publishing(word, dedup_key="key"))
    sending.waits_for(first)
    first.end(ending)
    assert sending.result() == ([] if ending == "commit" else [*pair])
    assert found(consumer, *pair) == [1, 1]
