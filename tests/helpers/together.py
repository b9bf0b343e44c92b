"""Many small cases of one rule as one test: a queue for each of them would take minutes."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def together(
    names: str | tuple[str, ...], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with each case, as parametrize would, but in one test that names all that fail.

    A case must leave its fixtures as it found them.
    """
    given = list(cases)

    def test_of(rule: Callable[..., None]) -> Callable[..., None]:
        own = [names] if isinstance(names, str) else list(names)

        @functools.wraps(rule)
        def test(**fixtures: Any) -> None:
            assert given, "there is no case"
            broken: list[Exception] = []
            for case in given:
                values = [case] if isinstance(names, str) else case
                try:
                    rule(**fixtures, **dict(zip(own, values, strict=True)))
                except Exception as error:
                    error.add_note(f"This is about {case!a:.200}.")
                    broken.append(error)
            if broken:
                raise ExceptionGroup(f"{len(broken)} of {len(given)} cases fail", broken)

        asked = inspect.signature(rule)
        fixtures = [each for name, each in asked.parameters.items() if name not in own]
        test.__signature__ = asked.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return test

    return test_of
