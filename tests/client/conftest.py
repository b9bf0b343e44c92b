"""Fixtures for the client's tests."""

from tests.helpers.client_queue import made
from tests.helpers.worker_queue import make_queue

__all__ = ["made", "make_queue"]
