"""Forked processes: they neither use nor close their parent's connections."""

import ctypes
import os
from collections.abc import Callable
from typing import Any


def after_fork(in_child: Callable[[], None]) -> None:
    """Call `in_child` in every process that is forked from this one, if the system has fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=in_child)


def keep_forever(value: Any) -> None:
    """Prevent Python from ever finalizing an object, even at exit.

    Some drivers log off when a connection is collected, on the socket that the parent uses.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
