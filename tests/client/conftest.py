"""Fixtures of the tests of the client."""

from tests.helpers.worker_queue import make_queue

__all__ = ["make_queue"]
