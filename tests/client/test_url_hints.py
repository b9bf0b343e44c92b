"""Hints for wrong URLs, without their passwords."""

from __future__ import annotations

from typing import Any

import pytest

import rowq
from rowq.engines import engine_for_url, engine_module

HINT = r"encode @ # / \? in user and password as %40 %23 %2F %3F"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:se@cret@127.0.0.1:1/db",
        "postgresql://me:se/cret@127.0.0.1:1/db",
        "mysql://me:se#cret@127.0.0.1:1/db",
        "mysql://me:12#34cret@127.0.0.1:1/db",
        "mysql://me:se/cret@127.0.0.1:1/db",
        "oracle://me:se#cret@127.0.0.1:1/db",
        "sqlserver://me:se#cret@127.0.0.1:1/db",
    ],
)
def test_unencoded_password_is_refused_with_a_hint(url: str) -> None:
    with pytest.raises(rowq.CannotConnect, match=HINT) as refused:
        rowq.connect(url)
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:se#cret@host/db",
        "postgresql://me:se%40cret@one:1,two:2/db?options=a@b",
        "postgresql://me:p@[::1]:5432/a@b",
        "postgresql://host/a@b",
        "postgresql://host:5432/a@b",
        "postgresql:///db?host=/run/x@y",
        "mysql://me:s@ecret@host/db",
    ],
)
def test_valid_url_is_accepted(url: str) -> None:
    assert engine_module(engine_for_url(url).name, "url").connection_parameters(url)


def test_unknown_scheme_error_lists_schemes() -> None:
    with pytest.raises(rowq.EngineUnknown) as refused:
        engine_for_url("sqlite:///x")
    assert str(refused.value) == (
        "the URL must begin with one of mariadb://, mssql://, mysql://, oracle://, postgres://, "
        "postgresql://, sqlserver://"
    )


@pytest.mark.parametrize("url", ["host=localhost dbname=shop password=secret", "dbname=shop"])
def test_libpq_keywords_are_refused_with_a_hint(url: str) -> None:
    with pytest.raises(rowq.EngineUnknown, match="use a URL such as postgresql://") as no:
        engine_for_url(url)
    assert "secret" not in str(no.value)


def test_missing_method_error_suggests_methods() -> None:
    queues: list[Any] = [rowq.Queue.__new__(rowq.Queue), rowq.AsyncQueue.__new__(rowq.AsyncQueue)]
    for queue in queues:
        with pytest.raises(AttributeError, match=r"dequeue_fast .*dequeue_wait"):
            _ = queue.dequeue
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            _ = queue.nonsense


def test_missing_url_raises_a_clear_error() -> None:
    with pytest.raises(rowq.EngineUnknown, match="got NoneType"):
        rowq.connect(None)  # type: ignore[arg-type]
    with pytest.raises(rowq.EngineUnknown, match="got NoneType"):
        rowq.Worker(None, "orders", print)  # type: ignore[arg-type]
