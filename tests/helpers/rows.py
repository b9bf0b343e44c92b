"""Fetched rows with a cursor's methods."""

from typing import Any


class Rows:
    """Rows as tuples, with a cursor's fetchone and fetchall."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, None after the last."""
        return self._rows.pop(0) if self._rows else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the remaining rows."""
        rows, self._rows = self._rows, []
        return rows
