"""The description of a peer: its name, program, settings and limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


class AbsentError(Exception):
    """A peer cannot run here; the text names the missing package and how to install it."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One queue and its programs, run by the protocol of this package.

    name: a word. origin: the package and the registry, in words.
    find: returns the client's version, without a database; raises AbsentError.
    program: the command line without the role, run in the root of the checkout.
    settings: in words, every choice that the client's manual leaves open.
    cannot: by need of a scenario, why it cannot run it: "batch" (several messages per fetch),
        "workers" (several on one queue), "delay", "group" (first in, first out per key), or a
        kind of scenario.
    only: the scenarios that it runs in, if not all.
    has_maintenance: whether it has the role maintain. floor: whether it is a bare table.
    own: whether it is rowq with other settings.
    """

    name: str
    origin: str
    find: Callable[[], str]
    program: tuple[str, ...]
    settings: str = ""
    cannot: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    has_maintenance: bool = False
    floor: bool = False
    own: bool = False
