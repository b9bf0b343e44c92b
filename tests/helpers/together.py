"""Many small cases as one test: a queue for each would take minutes."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Record = Callable[[str, object], None]

SKIPPED_CASE = "skipped case"
"""The report property with the reason of a skipped case."""


def check_all(cases: Iterable[tuple[str, Callable[[], object]]], record: Record) -> None:
    """Run named checks, and raise all failures as one group.

    If all checks skip, so does the test. Otherwise `record`, the fixture record_property, gets the
    reasons of skips.
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
            error.add_note(f"Case: {name}.")
            broken.append(error)
    assert ran, "the rule has no cases"
    if broken:
        raise ExceptionGroup(f"{len(broken)} of {ran} break the rule", broken)
    if len(skipped) == ran:
        raise skipped[-1]
    for reason in skipped:
        record(SKIPPED_CASE, str(reason))


def together(
    names: str | tuple[str, ...], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with each case, like parametrize, in one test that reports all failures.

    A case must leave its fixtures unchanged.
    """
    listed = list(cases)

    def test_of(rule: Callable[..., None]) -> Callable[..., None]:
        own = [names] if isinstance(names, str) else list(names)

        def named(case: Any) -> dict[str, Any]:
            return dict(zip(own, [case] if isinstance(names, str) else case, strict=True))

        @functools.wraps(rule)
        def test(record_property: Record, **fixtures: Any) -> None:
            checks = (
                (f"{case!a:.200}", functools.partial(rule, **fixtures, **named(case)))
                for case in listed
            )
            check_all(checks, record_property)

        signature = inspect.signature(rule)
        fixtures = [each for name, each in signature.parameters.items() if name not in own]
        fixtures.append(inspect.Parameter("record_property", inspect.Parameter.KEYWORD_ONLY))
        test.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return test

    return test_of
