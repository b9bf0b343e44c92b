"""manage.py rowq_work: a worker that calls a function of the project for every message."""

import argparse
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from rowq.contrib.django.worker import DjangoHandler, url_of
from rowq.engines import is_driver_error
from rowq.errors import RowqError
from rowq.tools.console.database import is_bare
from rowq.tools.terminal import log_to_stderr
from rowq.worker import Worker
from rowq.worker.handlers import find_handler


class Command(BaseCommand):  # type: ignore[misc]
    """Works on messages as `rowq work` does, with the project set up."""

    help = "Call a function with every message of a queue, until Ctrl-C or SIGTERM."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments and options of `rowq work` that are about functions."""
        parser.add_argument("queue_name", metavar="QUEUE", help="Name of the queue.")
        parser.add_argument(
            "handler",
            metavar="MODULE:FUNCTION",
            help="Called with every message; see rowq.Worker.",
        )
        parser.add_argument(
            "--database", default="default", help="Alias of the database that rowq is in."
        )
        parser.add_argument("--url", help="The database, where its settings make no URL of rowq's.")
        parser.add_argument(
            "--workers",
            type=int,
            default=1,
            metavar="N",
            help="Messages at a time: processes where it is more than 1.",
        )
        parser.add_argument(
            "--batch-size",
            type=int,
            help="Most messages per claim; by default 1, and more while messages are fast.",
        )
        parser.add_argument(
            "--lease-seconds", type=int, help="Length of the lease; the queue's by default."
        )
        parser.add_argument(
            "--timeout-seconds",
            type=float,
            help=(
                "Most seconds for a message. Then its function gets an exception, and is ended"
                " with its process if that does not help."
            ),
        )
        parser.add_argument("--worker-name", help="Who holds the messages, for people to read.")
        parser.add_argument(
            "--transactional",
            action="store_true",
            help=(
                "FUNCTION(message, connection) shares complete's transaction: the driver's"
                " connection of the worker, not one of Django's."
            ),
        )
        parser.add_argument(
            "--concurrent",
            action="store_true",
            help="Let an async FUNCTION work on all messages of a claim together.",
        )
        parser.add_argument(
            "--listen",
            action=argparse.BooleanOptionalAction,
            help="Be told of new messages while idle, which only PostgreSQL does.",
        )
        parser.add_argument(
            "--stripes", type=int, metavar="N", help="The queue is a striped one, with N stripes."
        )
        parser.add_argument(
            "--first-stripe", type=int, metavar="N", help="With --stripes: the stripe to ask first."
        )
        parser.add_argument("--drain", action="store_true", help="End when nothing is left.")
        parser.add_argument(
            "--metrics-port",
            type=int,
            help="Serve /metrics for Prometheus, /live and /ready there; needs rowq[metrics].",
        )
        parser.add_argument(
            "--metrics-host", default="127.0.0.1", help="The address for --metrics-port."
        )

    def handle(self, **options: Any) -> None:
        """Work; raises CommandError when going on makes no sense."""
        name = options["handler"]
        workers = options["workers"]
        in_processes = workers > 1 or options["timeout_seconds"] is not None
        url = options["url"]
        log_to_stderr()
        try:
            find_handler(name, 2 if options["transactional"] else 1)
            url = url or url_of(connections[options["database"]])
            worker = Worker(
                url,
                options["queue_name"],
                DjangoHandler(name),
                processes=workers if in_processes else 0,
                **{key: options[key] for key in _PASSED_ON},
            )
            stats = worker.run()
        except Exception as error:
            said = _missing(error, url, options)
            if said or isinstance(error, RowqError):
                raise CommandError(said or str(error)) from error
            raise
        self.stdout.write(
            f"{stats.processed} completed, {stats.retried} to be retried, {stats.failed} failed,"
            f" {stats.released} given back, {stats.stale} lost to others"
        )


def _missing(error: Exception, url: str | None, options: Mapping[str, Any]) -> str:
    """Return how to install rowq where a call has failed because it is missing, else nothing."""
    cause = error if is_driver_error(error) else error.__cause__
    if url is None or cause is None or not (is_driver_error(cause) and is_bare(url)):
        return ""
    command = "rowq migrate --url URL" if options["url"] else "python manage.py migrate rowq"
    alias = options["database"]
    if not options["url"] and alias != "default":
        command += f" --database {alias}"
    return f"rowq is not installed in this database; install it with: {command}"


_PASSED_ON = (
    *("batch_size", "lease_seconds", "timeout_seconds", "worker_name", "transactional"),
    *("concurrent", "listen", "stripes", "first_stripe", "drain", "metrics_port", "metrics_host"),
)
