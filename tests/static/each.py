"""Tests of one rule on many cases: collecting thousands of tests would take minutes."""

from collections.abc import Callable, Iterable
from functools import partial

from tests.helpers.together import Record, check_all
from tests.static.sources import label


def for_each(things: Iterable[object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make one test that calls a rule with each thing and reports all that break it.

    things: the argument of each call; a tuple is several arguments.
    """
    cases = [thing if isinstance(thing, tuple) else (thing,) for thing in things]

    def test_of(rule: Callable[..., None]) -> Callable[..., None]:
        def test(record_property: Record) -> None:
            checks = ((_named(arguments), partial(rule, *arguments)) for arguments in cases)
            check_all(checks, record_property)

        test.__name__, test.__doc__ = rule.__name__, rule.__doc__
        test.__module__, test.__qualname__ = rule.__module__, rule.__qualname__
        return test

    return test_of


def _named(arguments: tuple[object, ...]) -> str:
    """Return the names of a rule's arguments, of each its first line."""
    return " ".join(label(each).partition("\n")[0] for each in arguments)
