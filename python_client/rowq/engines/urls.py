"""The parameters in the query of a URL."""

from collections.abc import Set as AbstractSet
from urllib.parse import parse_qsl

from rowq.errors import CannotConnect


def malformed(product: str) -> CannotConnect:
    """Return the error for a malformed URL; do not show the URL, which may contain a secret."""
    return CannotConnect(
        f"{product}: malformed URL; encode @ # / ? in user and password as %40 %23 %2F %3F"
    )


def parameters_of(query: str, known: AbstractSet[str], product: str) -> dict[str, str]:
    """Return the parameters of a URL's query, by lower-case names with underscores.

    Raises ValueError for a malformed query, and CannotConnect, without the value, for a name that
    is not in `known`.
    """
    pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    found = {name.lower().replace("-", "_"): value for name, value in pairs}
    if unknown := sorted(found.keys() - known):
        names = ", ".join(sorted(known))
        raise CannotConnect(
            f"{product}: unknown URL parameter {unknown[0]}; expected one of {names}"
        )
    return found
