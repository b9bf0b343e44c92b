"""Fixtures for the tests of frameworks."""

from tests.helpers.client_queue import made

__all__ = ["made"]
