"""What all engines share, and the one place that finds them.

An engine is a package in here that has a module `engine`, and another one in rowq/tools/engines.
Nothing outside of these imports them by their names: `engines()` finds them all, and `part_of`
returns what one of them has for a task.
"""

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from rowq.engines.base import Engine
from rowq.errors import EngineUnknown, RowqError

EXAMPLE = "postgresql://user:password@host/database"
"""A URL, for errors."""

TOOLS = "rowq.tools.engines"
"""The packages of what installing and examining rowq needs of the engines."""

_PACKAGE = Path(__file__).resolve().parent


@cache
def engines() -> tuple[Engine, ...]:
    """Return one engine of each kind, without importing any driver."""
    names = sorted(module.parent.name for module in _PACKAGE.glob("*/engine.py"))
    return tuple(engine_module(name, "engine").ENGINE for name in names)


def engine_module(engine: str, part: str, package: str = __name__) -> Any:
    """Return a module of an engine's package.

    Args:
        engine: the engine's name, such as postgres.
        part: the module's name; docs/contributing.md lists those that every engine has.
        package: where the engine's package is: TOOLS for what only tools need.
    """
    return importlib.import_module(f"{package}.{engine}.{part}")


def engine_for_url(url: str) -> Engine:
    """Return the engine of a URL such as postgresql://host/database; raises EngineUnknown."""
    scheme = url.partition("://")[0] if "://" in url else ""
    for engine in engines():
        if scheme in engine.schemes:
            return engine
    known = ", ".join(f"{engine.schemes[0]}://" for engine in engines())
    hint = "" if scheme or "=" not in url else f"; write it as a URL, such as {EXAMPLE}"
    raise EngineUnknown(f"the URL must begin with one of {known}{hint}")


def engine_for_connection(connection: Any) -> Engine:
    """Return the engine whose driver made the connection; raises EngineUnknown."""
    # A handler's connection may be a cover around the driver's.
    covered = getattr(connection, "rowq_lent", connection)
    packages = packages_of(type(covered))
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
    raise EngineUnknown(f"{kind.__module__}.{kind.__qualname__} is no connection of {known}")


def engine_for_driver(driver: str, owner: str, remedy: str = "") -> Engine:
    """Return the engine of a driver's package; raises EngineUnknown.

    Args:
        driver: the package's name, such as psycopg.
        owner: who uses the driver, for the error.
        remedy: what the error ends with.
    """
    for engine in engines():
        if engine.driver_package == driver:
            return engine
    raise EngineUnknown(f"{owner} uses {driver} here; rowq knows {_drivers()}{remedy}")


def is_driver_error(error: BaseException) -> bool:
    """Whether an engine's driver raised the error."""
    packages = packages_of(type(error))
    return any(engine.driver_package in packages for engine in engines())


def is_foreseen(error: BaseException) -> bool:
    """Whether an error is rowq's or a driver's, and not a fault of the program."""
    return isinstance(error, RowqError) or is_driver_error(error)


def packages_of(kind: type) -> set[str]:
    """Return the names of the packages that a class and its bases are from."""
    return {base.__module__.partition(".")[0] for base in kind.__mro__}


def without_password(url: str) -> str:
    """Return the URL as it may be shown: user and parameters that hold secrets are blotted out."""
    shown = re.sub(r"(?<=://)[^/?#]*@", lambda user: _user_only(user.group()), url)
    return re.sub(r"(?i)((?:password|passfile|secret|token|key)=)[^&#]*", r"\1***", shown)


def _drivers() -> str:
    return ", ".join(engine.driver_package for engine in engines())


def _user_only(user_info: str) -> str:
    user, colon, _ = user_info[:-1].partition(":")
    return f"{user}:***@" if colon else user_info
