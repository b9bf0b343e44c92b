"""Seed 001: what the forms of chains hand out while a predecessor is in a consumer's hands."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from benchmarks.studies.seeds import seed_001
from benchmarks.studies.seeds.base import Form, sql_form
from benchmarks.studies.seeds.dialects import DIALECTS
from benchmarks.studies.seeds.seed_001.run import broken_order
from benchmarks.studies.seeds.seed_001.sessions import Account, ChainSession

FORMS = ["chain_blocked", "chain_join", "chain_join_waiting"]
OpenChain = Callable[[str], ChainSession]


@pytest.fixture
def open_chain(engine: str, place: Callable[[Form], Any]) -> Any:
    """Return a function that opens a session of a form; the same form each time."""
    with ExitStack() as stack:
        urls: list[str] = []

        def open_one(name: str) -> ChainSession:
            if not urls:
                form = sql_form(name, "", seed_001.FOLDER, engine)
                urls.append(stack.enter_context(place(form)))
            path = seed_001.FOLDER / engine / f"{name}.sql"
            return stack.enter_context(ChainSession(DIALECTS[engine], path, urls[0]))

        yield open_one


@pytest.mark.genuine
def test_a_blocked_message_is_handed_out_when_its_predecessor_is_done(
    open_chain: OpenChain,
) -> None:
    one, two = open_chain("chain_blocked"), open_chain("chain_blocked")
    one.prepare(4, 2)  # the chains 1, 2 and 3, 4
    assert (one.dequeue(), two.dequeue()) == (1, 3)
    one.finish(1)
    assert one.dequeue() == 2
    two.finish(3)
    assert two.dequeue() == 4


@pytest.mark.parametrize("name", FORMS)
def test_a_chain_whose_head_is_due_tomorrow_is_passed_over(
    name: str, open_chain: OpenChain
) -> None:
    one = open_chain(name)
    one.prepare(8, 2, stuck=4)
    assert one.dequeue() == 5
    one.finish(5)
    assert one.dequeue() in {6, 7}


@pytest.mark.parametrize("name", FORMS)
def test_a_message_whose_predecessor_is_already_done_is_ready_at_once(
    name: str, open_chain: OpenChain
) -> None:
    one = open_chain(name)
    first = one.enqueue(0)
    assert one.dequeue() == first
    one.finish(first)
    second = one.enqueue(first)
    third = one.enqueue(second)
    assert one.dequeue() == second
    one.finish(second)
    assert one.dequeue() == third
    one.finish(third)
    assert one.dequeue() == 0


@pytest.mark.genuine
def test_a_join_that_passes_over_locked_rows_breaks_the_order_on_mariadb_only(
    open_chain: OpenChain, engine: str
) -> None:
    one, two = open_chain("chain_join"), open_chain("chain_join")
    one.prepare(2, 2)
    assert one.dequeue() == 1
    # MariaDB has no "of": it passes over the predecessor's row too, as if that were gone.
    assert two.dequeue() == {"mariadb": 2}.get(engine, 0)


def test_a_message_begun_before_its_predecessor_ended_breaks_the_order() -> None:
    one = Account(handled=[1, 3], started=[1.0, 5.0], ended=[2.0, 6.0])
    two = Account(handled=[2, 4], started=[1.5, 7.0], ended=[3.0, 8.0])
    assert broken_order([one, two], {1: 0, 2: 1, 3: 2, 4: 3}) == 1
    assert broken_order([two], {2: 1, 4: 0}) == 1  # the predecessor was never done
