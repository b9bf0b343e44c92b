"""Django application: "rowq.contrib.django" in INSTALLED_APPS, extra `django`.

Its migrations install rowq in the database, `manage.py rowq_work` runs a worker, and `enqueue`
enqueues a message in the transaction of a connection.
"""

from typing import Any, Unpack

from rowq.messages import Enqueued
from rowq.options import MessageOptions, takes
from rowq.queue import Queue


@takes(MessageOptions)
def enqueue(
    queue_name: str,
    data: Any = None,
    *,
    text: str | None = None,
    using: str = "default",
    **options: Unpack[MessageOptions],
) -> Enqueued:
    """Enqueue a message on a Django connection, as rowq.Queue.enqueue does.

    In `atomic()` the message exists if and only if the block commits. Do not use
    transaction.on_commit: if the process dies after the commit, the message is lost. If rowq
    refuses the call, PostgreSQL aborts the transaction; to continue, put the call into its own
    `atomic()`. Errors of the driver are raised as Django's.

    Args:
        queue_name: the queue.
        data: a JSON value, or bytes; DjangoJSONEncoder converts dates, Decimal and UUID.
        text: a text body, instead of data.
        using: the alias of the database.
        options: as in rowq.Queue.enqueue, such as delay_seconds.
    """
    from django.core.serializers.json import DjangoJSONEncoder
    from django.db import connections

    encoder = DjangoJSONEncoder()
    connection = connections[using]
    # As for a Django statement: so the next request replaces a lost connection.
    connection.close_if_health_check_failed()
    with connection.wrap_database_errors:
        queue = Queue(connection, default=encoder.default)
        return queue.enqueue(queue_name, data, text=text, **options)
