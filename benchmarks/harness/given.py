"""What a lab needs of a system."""

from collections.abc import Callable
from typing import Protocol


class Installed(Protocol):
    """A system that a template database is made for."""

    @property
    def name(self) -> str:
        """A word."""

    @property
    def install(self) -> Callable[[str], object]:
        """A function that brings it into the empty database of a URL."""
