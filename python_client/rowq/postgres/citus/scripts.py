"""The scripts of sql/postgres/citus, and the wrappers in one of them."""

import re
from functools import cache

from rowq.resources import sql_directory

CARRIER = "rowq_citus"
"""The role as which calls go from node to node."""

CARRY = "carry.sql"
DISTRIBUTE = "distribute.sql"
ROUTE = "route.sql"
UNROUTE = "unroute.sql"

_WRAPPER = re.compile(
    r"^create or replace function rowq\.(\w+)\(.*?^\$\$;$", re.MULTILINE | re.DOTALL
)


@cache
def script(name: str) -> str:
    """Return the text of a script, such as route.sql."""
    path = sql_directory() / "postgres" / "citus" / name
    return path.read_text(encoding="utf-8")


@cache
def wrappers() -> dict[str, str]:
    """Return the text of each wrapper, as a file of its own would have it."""
    return {f"citus/{found[1]}.sql": f"{found[0]}\n" for found in _WRAPPER.finditer(script(ROUTE))}
