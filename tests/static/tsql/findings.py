"""The findings of the checking program, in the shape in which it reports them."""

from typing import NamedTuple


class Found(NamedTuple):
    """One finding; gate.Problem says what the fields are."""

    name: str
    line: int
    column: int
    code: str
    text: str
