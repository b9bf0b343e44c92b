"""Accounts of producers and of workers, as Celery uses them."""

from urllib.parse import quote, urlsplit

import rowq
from tests.engines.base import Connection
from tests.engines.mysql.accounts import open_account
from tests.helpers.celery_accounts import check_consumer, check_producer


def test_account_without_create_uses_existing_queues(
    connection: Connection, database_url: str, queue_name: str
) -> None:
    rowq.Queue(connection).create_queue(queue_name)
    parts = urlsplit(database_url)
    place = parts.netloc.rpartition("@")[2]
    for role, check in (("rowq_producer", check_producer), ("rowq_consumer", check_consumer)):
        with open_account(connection, database_url, role) as opened:
            session = opened()
            assert isinstance(session.user, bytes)
            assert isinstance(session.password, bytes)
            user, password = session.user.decode(), session.password.decode()
            session.close()
            url = f"{parts.scheme}://{user}:{quote(password)}@{place}/?{parts.query}"
            check(url, queue_name)
