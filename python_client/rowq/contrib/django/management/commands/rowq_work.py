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
from rowq.worker.context import queues_of
from rowq.worker.handlers import find_handler


class Command(BaseCommand):  # type: ignore[misc]
    """Worker, as `rowq work`, with the project set up."""

    help = "Call a function for each message of a queue, until Ctrl-C or SIGTERM."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments and options of `rowq work` for functions."""
        parser.add_argument("queue_name", metavar="QUEUE", help="Name of the queue.")
        parser.add_argument(
            "handler",
            metavar="MODULE:FUNCTION",
            help="Function to call for each message; see rowq.Worker.",
        )
        parser.add_argument(
            "--also",
            action="append",
            default=[],
            metavar="QUEUE",
            help="Another queue; repeatable. Each claim comes from the first that has a message.",
        )
        parser.add_argument(
            "--weights",
            metavar="N,N...",
            help="With --also: weighted turns of the queues, QUEUE first, instead of their order.",
        )
        parser.add_argument("--database", default="default", help="Alias of the database.")
        parser.add_argument(
            "--url", help="URL of the database, if its settings cannot be converted to a URL."
        )
        parser.add_argument(
            "--workers",
            type=int,
            default=1,
            metavar="N",
            help="Messages to process in parallel, in processes if more than 1. Default 1.",
        )
        parser.add_argument(
            "--batch-size",
            type=int,
            help="Maximum messages per claim. Default: 1, and more for fast messages.",
        )
        parser.add_argument(
            "--lease-seconds", type=int, help="Length of the lease. Default: the queue's."
        )
        parser.add_argument(
            "--timeout-seconds",
            type=float,
            help=(
                "Maximum seconds per message. Then the function gets an exception; if it does not"
                " end, its process is killed."
            ),
        )
        parser.add_argument("--worker-name", help="Worker name shown in `rowq claims`.")
        parser.add_argument(
            "--transactional",
            action="store_true",
            help=(
                "Call FUNCTION(message, connection) in the transaction of the completion, with the"
                " driver's connection, not Django's."
            ),
        )
        parser.add_argument(
            "--concurrent",
            action="store_true",
            help="Process all messages of a claim in parallel with an async FUNCTION.",
        )
        parser.add_argument(
            "--listen",
            action=argparse.BooleanOptionalAction,
            help="Use LISTEN instead of polling while idle (PostgreSQL). Default: if possible.",
        )
        parser.add_argument(
            "--stripes",
            type=int,
            metavar="N",
            help="Number of stripes per server, for a striped queue.",
        )
        parser.add_argument(
            "--first-stripe",
            type=int,
            metavar="N",
            help="With --stripes: stripe to poll first.",
        )
        parser.add_argument(
            "--drain", action="store_true", help="Exit when no message is ready, due or leased."
        )
        parser.add_argument(
            "--metrics-port",
            type=int,
            help="Port for /metrics, /live and /ready; requires rowq[metrics].",
        )
        parser.add_argument(
            "--metrics-host",
            default="127.0.0.1",
            help="Address for --metrics-port. Default 127.0.0.1.",
        )

    def handle(self, **options: Any) -> None:
        """Run the worker; raises CommandError if it cannot continue."""
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
                queues_of([options["queue_name"], *options["also"]], options["weights"]),
                DjangoHandler(name),
                processes=workers if in_processes else 0,
                **{key: options[key] for key in _PASSED_ON},
            )
            stats = worker.run()
        except Exception as error:
            text = _missing(error, url, options)
            if text or isinstance(error, RowqError):
                raise CommandError(text or str(error)) from error
            raise
        self.stdout.write(
            f"{stats.processed} completed, {stats.retried} retried, {stats.failed} failed,"
            f" {stats.released} released, {stats.stale} stale"
        )


def _missing(error: Exception, url: str | None, options: Mapping[str, Any]) -> str:
    """Return how to install rowq if a call failed because it is missing, or an empty string."""
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
