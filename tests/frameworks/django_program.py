"""A Django project in one file: it installs, uses and removes rowq.

It is called with the settings of its database as JSON, and prints what it sees as JSON.
"""

import json
import sys
from decimal import Decimal
from typing import Any

import django
from django.conf import settings
from django.core.management import CommandError, call_command

HANDLED: list[Any] = []


def handle(message: Any) -> None:
    """Record a message, and query the database through Django."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("select 1")
        HANDLED.append([message.data, cursor.fetchone()[0]])


def life() -> dict[str, Any]:
    """Return the results by step."""
    from django.db import connection, transaction

    import rowq
    from rowq.contrib.django import enqueue
    from rowq.contrib.django.worker import url_of
    from rowq.tools.migrate import status

    url = url_of(connection)
    seen: dict[str, Any] = {}
    try:
        call_command("rowq_work", "orders", "django_program:handle", "--drain")
    except CommandError as error:
        seen["missing"] = str(error)
    call_command("migrate", "rowq", verbosity=0)
    call_command("migrate", "rowq", verbosity=0)
    seen["installed"] = status(url).installed
    queue = rowq.Queue(connection)
    queue.create_queue("orders")
    for number, commits in ((1, True), (2, False)):
        with transaction.atomic():
            enqueue("orders", {"id": number, "total": Decimal("1.50")})
            transaction.set_rollback(not commits)
    seen["ready"] = [message.data for message in queue.peek("orders", max_messages=10)]
    try:
        call_command("migrate", "rowq", "zero", verbosity=0)
    except Exception as error:
        seen["refused"] = str(error)
    call_command("rowq_work", "orders", "django_program:handle", "--drain")
    seen["left"] = queue.queue_stats("orders")[0].ready
    call_command("migrate", "rowq", "zero", verbosity=0)
    seen["removed"] = status(url).installed
    call_command("migrate", "rowq", verbosity=0)
    seen["again"] = status(url).installed
    return seen


def main() -> None:
    """Set up the project and run its steps."""
    database = json.loads(sys.argv[1])
    if database["ENGINE"].endswith("mysql"):
        # PyMySQL replaces mysqlclient, which requires a compiler.
        import pymysql

        pymysql.install_as_MySQLdb()
    settings.configure(
        DATABASES={"default": database}, INSTALLED_APPS=["rowq.contrib.django"], USE_TZ=True
    )
    django.setup()
    # The handler is imported from this module.
    sys.modules["django_program"] = sys.modules["__main__"]
    json.dump(life() | {"handled": HANDLED}, sys.stdout)


if __name__ == "__main__":
    main()
