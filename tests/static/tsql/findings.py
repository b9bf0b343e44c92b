"""What the checking program finds, in the shape in which it reports it."""

from typing import NamedTuple


class Found(NamedTuple):
    """One finding; gate.Problem says what the fields are."""

    name: str
    line: int
    column: int
    code: str
    text: str
