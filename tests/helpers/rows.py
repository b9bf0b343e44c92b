"""The rows of a statement, fetched: for drivers whose cursors are more than that."""

from typing import Any


class Rows:
    """Rows as tuples, with the two methods of a cursor that tests use."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, None after the last."""
        return self._rows.pop(0) if self._rows else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows that are left."""
        rows, self._rows = self._rows, []
        return rows
