"""Marks the tests of a directory as slow, from its conftest.py."""

from typing import Any

import pytest


def mark_slow(item: pytest.Item, reason: str, **where: Any) -> None:
    """Mark a test as slow unless it, or its file, says so otherwise; see selection.py."""
    if item.get_closest_marker("slow") is None:
        item.add_marker(pytest.mark.slow(reason, **where))
