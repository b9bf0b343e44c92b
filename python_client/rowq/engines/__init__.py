"""Discovery of engines, and code that they share.

An engine is a package here with a module `engine`, and a package in rowq/tools/engines. No other
code imports these packages by name: `engines()` finds them all, and `engine_module` returns a
module of one.
"""

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from rowq.engines.base import Engine
from rowq.errors import EngineUnknown, RowqError

EXAMPLE = "postgresql://user:password@host/database"
"""An example URL, for errors."""

TOOLS = "rowq.tools.engines"
"""The package of the engines' code for installation and inspection."""

_PACKAGE = Path(__file__).resolve().parent


@cache
def engines() -> tuple[Engine, ...]:
    """Return one engine of each kind, without importing any driver."""
    names = sorted(module.parent.name for module in _PACKAGE.glob("*/engine.py"))
    return tuple(engine_module(name, "engine").ENGINE for name in names)


def engine_module(engine: str, module: str, package: str = __name__) -> Any:
    """Return a module of an engine such as postgres; docs/contributing.md lists them.

    package: TOOLS for a module of rowq/tools/engines.
    """
    return importlib.import_module(f"{package}.{engine}.{module}")


def engine_for_url(url: str) -> Engine:
    """Return the engine of a URL such as postgresql://host/database; raises EngineUnknown."""
    if not isinstance(url, str):
        raise EngineUnknown(f"expected a URL such as {EXAMPLE}, got {type(url).__name__}")
    scheme = url.partition("://")[0] if "://" in url else ""
    for engine in engines():
        if scheme in engine.schemes:
            return engine
    schemes = {scheme for engine in engines() for scheme in engine.schemes if "+" not in scheme}
    known = ", ".join(f"{scheme}://" for scheme in sorted(schemes))
    hint = "" if scheme or "=" not in url else f"; use a URL such as {EXAMPLE}"
    raise EngineUnknown(f"the URL must begin with one of {known}{hint}")


def engine_for_connection(connection: Any) -> Engine:
    """Return the engine whose driver made the connection; raises EngineUnknown."""
    # A handler's connection may wrap the driver's.
    packages = packages_of(type(getattr(connection, "rowq_lent", connection)))
    for engine in engines():
        if engine.driver_package in packages:
            return engine
        for driver, package in engine.other_drivers.items():
            if driver in packages:
                other: Engine = importlib.import_module(f"{package}.{engine.name}").ENGINE
                return other
    kind = type(connection)
    others = [driver for engine in engines() for driver in engine.other_drivers]
    known = ", ".join([_drivers(), *others])
    name = f"{kind.__module__}.{kind.__qualname__}"
    raise EngineUnknown(f"unsupported connection {name}; expected one of {known}")


def engine_for_driver(driver: str, owner: str, remedy: str = "") -> Engine:
    """Return the engine of a driver's package, such as psycopg; raises EngineUnknown.

    owner: the library that uses the driver, for the error. remedy: the end of the error.
    """
    for engine in engines():
        if engine.driver_package == driver:
            return engine
    raise EngineUnknown(f"{owner} uses {driver}; rowq supports {_drivers()}{remedy}")


def is_driver_error(error: BaseException) -> bool:
    """Whether an engine's driver raised the error."""
    packages = packages_of(type(error))
    return any(engine.driver_package in packages for engine in engines())


def is_foreseen(error: BaseException) -> bool:
    """Whether rowq or a driver raised the error."""
    return isinstance(error, RowqError) or is_driver_error(error)


def packages_of(kind: type) -> set[str]:
    """Return the top-level packages of a class and its bases."""
    return {base.__module__.partition(".")[0] for base in kind.__mro__}


def without_password(url: str) -> str:
    """Return the URL with password and secret parameters masked."""
    shown = re.sub(r"(?<=://)[^/?#]*@", lambda user: _user_only(user.group()), url)
    return re.sub(r"(?i)((?:password|passfile|secret|token|key)=)[^&#]*", r"\1***", shown)


def _drivers() -> str:
    return ", ".join(engine.driver_package for engine in engines())


def _user_only(user_info: str) -> str:
    user, colon, _ = user_info[:-1].partition(":")
    return f"{user}:***@" if colon else user_info
