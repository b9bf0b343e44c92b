"""A rule about each of many things is one test: thousands would take minutes to collect."""

from collections.abc import Callable, Iterable
from functools import partial

from tests.helpers.together import Record, check_all
from tests.static.sources import label


def for_each(things: Iterable[object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make one test of a rule about each thing; it tells of all things that break the rule.

    Args:
        things: What the rule is called with, one after the other; a tuple is its arguments.
    """
    given = [thing if isinstance(thing, tuple) else (thing,) for thing in things]

    def test_of(rule: Callable[..., None]) -> Callable[..., None]:
        def test(record_property: Record) -> None:
            checks = ((_named(arguments), partial(rule, *arguments)) for arguments in given)
            check_all(checks, record_property)

        test.__name__, test.__doc__ = rule.__name__, rule.__doc__
        test.__module__, test.__qualname__ = rule.__module__, rule.__qualname__
        return test

    return test_of


def _named(arguments: tuple[object, ...]) -> str:
    """Return the names of a rule's arguments; of one that has a text the name is enough."""
    return " ".join(label(each).partition("\n")[0] for each in arguments)
