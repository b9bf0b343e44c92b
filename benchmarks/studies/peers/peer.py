"""Describes a peer to the harness: its name, its program, its settings and its limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


class AbsentError(Exception):
    """A peer cannot run here; the text has the missing part and how to install it."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One queue and its programs; the package docstring has the protocol.

    name: a word. origin: the package and the registry, in words.
    find: returns the client's version, without a database; raises AbsentError.
    program: the command line to which the role is added, started in the root of the checkout.
    settings: in words, every choice made for this client that its manual leaves open.
    cannot: the reason why it cannot run scenarios that need "batch" (several messages a fetch),
        "workers" (several at a time on one queue), "delay", "rate" or "group" (first in, first
        out per key), or a kind of scenario; missing if it can.
    keeper: whether it has the role keep. floor: whether it is a bare statement, no queue.
    own: whether it is rowq in another setting, and no other queue.
    """

    name: str
    origin: str
    find: Callable[[], str]
    program: tuple[str, ...]
    settings: str = ""
    cannot: Mapping[str, str] = field(default_factory=dict)
    keeper: bool = False
    floor: bool = False
    own: bool = False
