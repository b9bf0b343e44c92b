"""The scripts of sql/postgres/citus, and the wrappers in one of them."""

import re
from functools import cache

from rowq.resources import sql_directory

CARRIER = "rowq_citus"
"""The role as which calls go from node to node."""

ASIDE = "aside.sql"
BEHIND = "behind.sql"
CARRY = "carry.sql"
CHECK = "check.sql"
DISTRIBUTE = "distribute.sql"
RIGHTS = "rights.sql"
ROUTE = "route.sql"
UNCARRY = "uncarry.sql"
UNROUTE = "unroute.sql"

_WRAPPER = re.compile(
    r"^create or replace function rowq\.(\w+)\((.*?)^returns (table \(.*?)^language.*?^\$\$;$",
    re.MULTILINE | re.DOTALL,
)
_CARRIER = re.compile(r"create or replace function rowq_citus\.(\w+)\(")
_DEFAULT = re.compile(r" default [^,\n]*")


@cache
def script(name: str) -> str:
    """Return the text of a script, such as route.sql."""
    path = sql_directory() / "postgres" / "citus" / name
    return path.read_text(encoding="utf-8")


@cache
def wrappers() -> dict[str, str]:
    """Return the text of each wrapper, as a file of its own would have it."""
    return {f"citus/{found[1]}.sql": f"{found[0]}\n" for found in _WRAPPER.finditer(script(ROUTE))}


@cache
def carriers() -> tuple[str, ...]:
    """Return the names of the functions of the schema rowq_citus."""
    return tuple(_CARRIER.findall(script(CARRY) + script(DISTRIBUTE)))


@cache
def signatures() -> dict[str, tuple[str, str]]:
    """Return parameters and columns of each wrapper, as the catalog of PostgreSQL tells them."""
    return {
        found[1]: (
            " ".join(_DEFAULT.sub("", found[2]).replace(")", "").split()),
            " ".join(found[3].split()).replace("table ( ", "TABLE(").replace(" )", ")"),
        )
        for found in _WRAPPER.finditer(script(ROUTE))
    }
