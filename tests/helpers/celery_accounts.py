"""kombu with a non-administrator account."""

import kombu
import pytest

import rowq
import rowq.contrib.celery


def check_producer(url: str, queue_name: str) -> None:
    """Send to an existing queue as a member of rowq_producer; another queue is refused."""
    with kombu.Connection(f"rowq+{url}") as connection, connection.Producer() as producer:
        kombu.Queue(queue_name, channel=connection).declare()
        producer.publish(1, routing_key=queue_name)
        refuses_another(connection, queue_name)


def check_consumer(url: str, queue_name: str) -> None:
    """Receive check_producer's message as a member of rowq_consumer."""
    with kombu.Connection(f"rowq+{url}") as connection:
        kombu.Queue(queue_name, channel=connection).declare()
        message = connection.default_channel.basic_get(queue_name)
        assert message.payload == 1
        message.ack()
        refuses_another(connection, queue_name)


def refuses_another(connection: kombu.Connection, queue_name: str) -> None:
    """Declare an unknown queue, which is refused."""
    name = f"{queue_name} other"
    with pytest.raises(rowq.QueueNotFound, match=f"ask an admin to run rowq queue create {name}"):
        kombu.Queue(name, channel=connection).declare()
