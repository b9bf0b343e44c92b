"""Fixtures of the tests for one engine only."""

from tests.helpers.worker_queue import make_queue

__all__ = ["make_queue"]
