"""What a forked process does with its parent's connections: it neither uses nor closes them."""

import ctypes
import os
from collections.abc import Callable
from typing import Any


def after_fork(in_child: Callable[[], None]) -> None:
    """Have `in_child` called in every process that is forked from this one, where there are any."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=in_child)


def keep_for_ever(thing: Any) -> None:
    """Keep Python from ever finalizing something, even at the end of the program.

    Some drivers log off when a connection is collected: on a socket that the parent speaks on.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
