"""Many small cases of one rule as one test: a queue for each of them would take minutes."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Record = Callable[[str, object], None]

SKIPPED_CASE = "skipped case"
"""The property of a test's report with the reason of a case that was skipped."""


def check_all(cases: Iterable[tuple[str, Callable[[], object]]], record: Record) -> None:
    """Run some named checks of one rule, and raise what breaks it as one group.

    If each check is skipped, the test is skipped for the last one's reason. If some are, `record`,
    the fixture record_property, gets their reasons.
    """
    ran = 0
    skipped: list[BaseException] = []
    broken: list[Exception] = []
    for name, check in cases:
        ran += 1
        try:
            check()
        except pytest.skip.Exception as skip:
            skipped.append(skip)
        except Exception as error:
            error.add_note(f"This is about {name}.")
            broken.append(error)
    assert ran, "the rule is about nothing"
    if broken:
        raise ExceptionGroup(f"{len(broken)} of {ran} break the rule", broken)
    if len(skipped) == ran:
        raise skipped[-1]
    for reason in skipped:
        record(SKIPPED_CASE, str(reason))


def together(
    names: str | tuple[str, ...], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with each case, as parametrize would, but in one test that names all that fail.

    A case must leave its fixtures as it found them.
    """
    given = list(cases)

    def test_of(rule: Callable[..., None]) -> Callable[..., None]:
        own = [names] if isinstance(names, str) else list(names)

        def named(case: Any) -> dict[str, Any]:
            return dict(zip(own, [case] if isinstance(names, str) else case, strict=True))

        @functools.wraps(rule)
        def test(record_property: Record, **fixtures: Any) -> None:
            checks = (
                (f"{case!a:.200}", functools.partial(rule, **fixtures, **named(case)))
                for case in given
            )
            check_all(checks, record_property)

        asked = inspect.signature(rule)
        fixtures = [each for name, each in asked.parameters.items() if name not in own]
        fixtures.append(inspect.Parameter("record_property", inspect.Parameter.KEYWORD_ONLY))
        test.__signature__ = asked.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return test

    return test_of
