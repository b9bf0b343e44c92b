"""What whoever starts the page has decided."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Literal

from starlette.requests import Request

Level = Literal["no", "look", "act"]
Authorize = Callable[[Request], Level | Awaitable[Level]]
"""Says what who sent a request may do; a plain function is called in a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What holds for all requests; the parameters of create_app say what each means.

    key: what forms and notices are signed with.
    """

    authorize: Authorize
    title: str
    interval: float
    read_only: bool
    hide_errors: bool
    hide_bodies: bool
    allow_hosts: Collection[str] | None
    key: bytes
