"""The parameters in the query of a URL."""

from collections.abc import Set as AbstractSet
from urllib.parse import parse_qsl

from rowq.errors import CannotConnect


def malformed(product: str) -> CannotConnect:
    """Return the error of a URL that cannot be read; it may hold a secret, so it is not shown."""
    return CannotConnect(
        f"{product}: the URL is malformed; in user and password write @ as %40, # as %23, / as %2F"
        " and ? as %3F"
    )


def parameters_of(query: str, known: AbstractSet[str], product: str) -> dict[str, str]:
    """Return the parameters of a URL's query, their names in lower case and with underscores.

    Args:
        query: what follows the question mark.
        known: the names that may occur.
        product: what the engine is called in errors.

    Raises:
        ValueError: the query is malformed.
        CannotConnect: a name is unknown; the error has the name and no value.
    """
    pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    given = {name.lower().replace("-", "_"): value for name, value in pairs}
    if unknown := sorted(given.keys() - known):
        names = ", ".join(sorted(known))
        raise CannotConnect(f"{product}: the URL's parameter {unknown[0]} is none of {names}")
    return given
