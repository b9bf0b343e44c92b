"""Checks of handlers before a worker starts."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import rowq
from rowq.worker.handlers import find_handler

URL = "postgresql://nobody@127.0.0.1:1/nowhere"


def one(message: Any) -> None:
    """Take a message."""


def two(message: Any, connection: Any) -> None:
    """Take a message and a connection."""


def none() -> None:
    """Take nothing."""


async def two_async(message: Any, connection: Any) -> None:
    """Take a message and a connection, asynchronously."""


class Shop:
    """Handlers as methods."""

    def one(self, message: Any) -> None:
        """Take a message."""

    def __call__(self, message: Any, connection: Any) -> None:
        """Take a message and a connection."""


def with_more(message: Any, *, strict: bool = False, **more: Any) -> None:
    """Take a message and optional arguments."""


@pytest.mark.parametrize("handler", [one, Shop().one, with_more, print, functools.partial(two, 1)])
def test_handler_of_a_message_is_accepted(handler: Callable[..., object]) -> None:
    rowq.Worker(URL, "orders", handler)
    rowq.Worker(URL, "orders", handler, per="batch")


@pytest.mark.parametrize("handler", [two, two_async, Shop(), print, lambda *_: None])
def test_transactional_handler_of_two_is_accepted(handler: Callable[..., object]) -> None:
    rowq.Worker(URL, "orders", handler, transactional=True)


@pytest.mark.parametrize("handler", [two, two_async, none, Shop(), Shop.one, lambda *, _: None])
def test_handler_of_other_arguments_is_refused(handler: Callable[..., object]) -> None:
    with pytest.raises(rowq.InvalidArgument, match=r"callable as handler\(message\)"):
        rowq.Worker(URL, "orders", handler)


def test_refusal_names_arguments_and_transactional() -> None:
    expected = r"missing a required argument: 'connection'; .*transactional=True"
    with pytest.raises(rowq.InvalidArgument, match=expected):
        rowq.Worker(URL, "orders", two)


def test_transactional_handler_of_one_is_refused() -> None:
    with pytest.raises(rowq.InvalidArgument, match=r"handler\(messages, connection\).*too many"):
        rowq.Worker(URL, "orders", one, per="batch", transactional=True)


def test_named_handler_of_other_arguments_is_refused() -> None:
    with pytest.raises(rowq.WorkerFailed, match=r"handlers:note.*handler\(message, connection\)"):
        find_handler("tests.client.handlers:note", 2)


def test_handler_for_processes_must_be_importable() -> None:
    def local(message: Any) -> None:
        """Be local to a function."""

    for handler in (local, lambda _: None, functools.partial(local)):
        with pytest.raises(rowq.InvalidArgument, match=r'importable.*"module:function"'):
            rowq.Worker(URL, "orders", handler, processes=2)
        rowq.Worker(URL, "orders", handler)
    rowq.Worker(URL, "orders", one, processes=2)
    rowq.Worker(URL, "orders", "no.such:function", processes=2)


def test_interactive_handler_is_refused_for_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It can be pickled, but a child cannot import it."""
    interpreter = ModuleType("__main__")
    exec("def typed(message): pass", vars(interpreter))  # noqa: S102
    monkeypatch.setitem(sys.modules, "__main__", interpreter)
    with pytest.raises(rowq.InvalidArgument, match="importable"):
        rowq.Worker(URL, "orders", interpreter.typed, processes=1)
