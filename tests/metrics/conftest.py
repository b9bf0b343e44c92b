"""Fixtures for metrics."""

from tests.cli.conftest import run, run_without_database
from tests.helpers.client_queue import made
from tests.helpers.worker_queue import make_queue

__all__ = ["made", "make_queue", "run", "run_without_database"]
