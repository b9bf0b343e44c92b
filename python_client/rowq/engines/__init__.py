"""The engines rowq can talk to: every module of this package that has a class ENGINE.

A new engine is one new module here; nothing else changes.
"""

import importlib
import pkgutil
import re
from functools import cache
from typing import Any

from rowq.engines.base import Engine
from rowq.errors import EngineUnknown


@cache
def engines() -> tuple[Engine, ...]:
    """Return one engine of each kind, without importing any driver."""
    modules = (
        importlib.import_module(f"{__name__}.{info.name}")
        for info in pkgutil.iter_modules(__path__)
    )
    return tuple(module.ENGINE for module in modules if hasattr(module, "ENGINE"))


def engine_for_url(url: str) -> Engine:
    """Return the engine of a URL such as postgresql://host/database; raises EngineUnknown."""
    scheme = url.partition("://")[0] if "://" in url else ""
    for engine in engines():
        if scheme in engine.schemes:
            return engine
    known = ", ".join(f"{scheme}://" for engine in engines() for scheme in engine.schemes)
    raise EngineUnknown(f"the URL must begin with one of {known}")


def engine_for_connection(connection: Any) -> Engine:
    """Return the engine whose driver made the connection; raises EngineUnknown."""
    # A handler's connection may be a cover of the driver's.
    covered = getattr(connection, "rowq_lent", connection)
    packages = {kind.__module__.partition(".")[0] for kind in type(covered).__mro__}
    for engine in engines():
        if engine.driver_package in packages:
            return engine
    known = ", ".join(engine.driver_package for engine in engines())
    kind = type(connection)
    raise EngineUnknown(f"{kind.__module__}.{kind.__qualname__} is no connection of {known}")


def is_driver_error(error: BaseException) -> bool:
    """Whether an engine's driver raised the error."""
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return any(engine.driver_package in packages for engine in engines())


def without_password(url: str) -> str:
    """Return the URL as it may be shown: user and parameters that hold secrets are blotted out."""
    shown = re.sub(r"(?<=://)[^/?#]*@", lambda user: _user_only(user.group()), url)
    return re.sub(r"(?i)((?:password|passfile|secret|token|key)=)[^&#]*", r"\1***", shown)


def _user_only(user_info: str) -> str:
    user, colon, _ = user_info[:-1].partition(":")
    return f"{user}:***@" if colon else user_info
