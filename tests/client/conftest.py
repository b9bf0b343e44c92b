"""Fixtures of the tests of the client."""

from tests.helpers.client_queue import made
from tests.helpers.worker_queue import make_queue

__all__ = ["made", "make_queue"]
