"""Calls of routines on oGRAC, and the comparison of what they return."""

from tests.laboratory.ograc.client import Client, RefusedError

Row = dict[str, str]


class UnexpectedError(Exception):
    """A call has returned something else than the contract says."""


class Calls:
    """Calls routines and compares what they return.

    returned: routines that have returned what was expected; refused: the error numbers they raised.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.returned: set[str] = set()
        self.refused: dict[str, set[int]] = {}

    def want(self, name: str, *rows: Row, **arguments: str) -> list[Row]:
        """Call a routine that must return these rows, columns that are not named apart."""
        package, _, routine = name.rpartition(".")
        got = self._client.call(f"{package or 'rowq'}.{routine}", **arguments)
        seen = [
            {key: one.get(key, "(none)") for key in row}
            for one, row in zip(got, rows, strict=False)
        ]
        if seen != list(rows) or len(got) != len(rows):
            raise UnexpectedError(f"{name}({arguments}) returned {got}, not {list(rows)}")
        self.returned.add(routine)
        return got

    def refuse(self, code: int, name: str, **arguments: str) -> None:
        """Call a routine that must raise an error with this number."""
        try:
            got = self._client.call(f"rowq.{name}", **arguments)
        except RefusedError as error:
            if error.code != code:
                raise UnexpectedError(f"{name}({arguments}) raised {error}, not {code}") from error
            self.refused.setdefault(name, set()).add(code)
            return
        raise UnexpectedError(f"{name}({arguments}) returned {got} instead of raising {code}")

    def text(self, expression: str) -> str:
        """Return the value of an expression of SQL."""
        return self._client.rows(f"select {expression} as value from dual;\n")[0]["value"]

    def change(self, statement: str) -> None:
        """Change rows behind the routines' back: so time passes without waiting."""
        self._client.rows(f"{statement};\ncommit;\n")

    def count(self, table: str) -> int:
        """Return how many rows a table has."""
        return int(self._client.rows(f"select count(*) as n from {table};\n")[0]["n"])
