"""Accounts of producers and of workers, as Celery uses them."""

import rowq
from tests.engines.base import Connection
from tests.helpers.celery_accounts import check_consumer, check_producer


def test_account_without_create_uses_existing_queues(
    connection: Connection, database_url: str, queue_name: str
) -> None:
    rowq.Queue(connection).create_queue(queue_name)
    check_producer(f"{database_url}&options=-c%20role%3Drowq_producer", queue_name)
    check_consumer(f"{database_url}&options=-c%20role%3Drowq_consumer", queue_name)
