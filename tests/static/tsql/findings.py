"""Findings, as the checker writes them."""

from typing import NamedTuple


class Found(NamedTuple):
    """A finding; the fields are those of gate.Problem."""

    name: str
    line: int
    column: int
    code: str
    text: str
