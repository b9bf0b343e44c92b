"""A URL that cannot work is told how to be written, and no part of its password is shown."""

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
def test_a_character_that_ends_a_password_is_told_how_to_be_written(url: str) -> None:
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
def test_a_url_that_works_is_left_alone(url: str) -> None:
    assert engine_module(engine_for_url(url).name, "url").connection_parameters(url)


def test_an_unknown_scheme_is_answered_with_one_of_each_engine() -> None:
    with pytest.raises(rowq.EngineUnknown) as refused:
        engine_for_url("sqlite:///x")
    assert str(refused.value) == (
        "the URL must begin with one of mysql://, oracle://, postgresql://, sqlserver://"
    )


@pytest.mark.parametrize("url", ["host=localhost dbname=shop password=secret", "dbname=shop"])
def test_the_keywords_of_libpq_are_to_be_written_as_a_url(url: str) -> None:
    with pytest.raises(rowq.EngineUnknown, match="use a URL such as postgresql://") as no:
        engine_for_url(url)
    assert "secret" not in str(no.value)


def test_a_method_that_a_queue_does_not_have_is_answered_with_those_it_has() -> None:
    queues: list[Any] = [rowq.Queue.__new__(rowq.Queue), rowq.AsyncQueue.__new__(rowq.AsyncQueue)]
    for queue in queues:
        with pytest.raises(AttributeError, match=r"dequeue_fast .*dequeue_wait"):
            _ = queue.dequeue
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            _ = queue.nonsense
