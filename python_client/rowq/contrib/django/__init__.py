"""rowq as an application of Django's: "rowq.contrib.django" in INSTALLED_APPS, extra `django`.

Its migrations install rowq in the database of the connection that they run on, `manage.py
rowq_work` is a worker, and `enqueue` hands a message over in the transaction of a connection.
Nothing else of rowq imports this package.
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
    """Hand over a message on a connection of Django's, as rowq.Queue.enqueue does.

    It is part of the connection's transaction: in `atomic()` it exists if and only if that commits.
    So it needs no transaction.on_commit, which runs after the commit: a process that dies in
    between would have saved the order and lost its message. After a refusal of rowq's PostgreSQL
    rolls the block back; one that is to go on puts the call into an `atomic()` of its own. An error
    of the driver is raised as Django's.

    Args:
        queue_name: the queue.
        data: a JSON value, or bytes; dates, Decimal and UUID become what Django makes of them.
        text: a text body, instead of data.
        using: the alias of the database that rowq is in.
        options: those of rowq.Queue.enqueue, such as delay_seconds.
    """
    from django.core.serializers.json import DjangoJSONEncoder
    from django.db import connections

    encoder = DjangoJSONEncoder()
    connection = connections[using]
    # As for a statement of Django's: so a connection that is lost is replaced by the next request.
    connection.close_if_health_check_failed()
    with connection.wrap_database_errors:
        queue = Queue(connection, default=encoder.default)
        return queue.enqueue(queue_name, data, text=text, **options)
