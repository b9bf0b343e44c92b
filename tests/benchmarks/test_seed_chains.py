"""Seed 001: what the forms of chains hand out while a predecessor is in a consumer's hands."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from benchmarks.studies.seeds import seed_001
from benchmarks.studies.seeds.base import Form
from benchmarks.studies.seeds.dialects import DIALECTS
from benchmarks.studies.seeds.seed_001.run import broken_order, opener
from benchmarks.studies.seeds.seed_001.sessions import Account, ChainSession

FORMS = ["rowq", "chain_blocked", "chain_join", "chain_join_waiting"]
OpenChain = Callable[[str], ChainSession]


@pytest.fixture
def open_chain(engine: str, place: Callable[[Form], Any]) -> Any:
    """Return a function that opens a session of a form; the same form each time."""
    with ExitStack() as stack:
        urls: list[str] = []

        def open_one(name: str) -> ChainSession:
            is_first = not urls
            if is_first:
                (form,) = (form for form in seed_001.SEED.forms(engine) if form.name == name)
                urls.append(stack.enter_context(place(form)))
            chain = stack.enter_context(opener(DIALECTS[engine], name)(urls[0]))
            if is_first:
                chain.create()
            return chain

        yield open_one


@pytest.mark.genuine
@pytest.mark.parametrize("name", ["rowq", "chain_blocked"])
def test_a_blocked_message_is_handed_out_when_its_predecessor_is_done(
    name: str, open_chain: OpenChain
) -> None:
    first, second = open_chain(name), open_chain(name)
    numbers = list(first.prepare(4, 2))  # The first two are a chain, and the last two.
    assert (first.dequeue(), second.dequeue()) == (numbers[0], numbers[2])
    first.finish(numbers[0])
    assert first.dequeue() == numbers[1]
    second.finish(numbers[2])
    assert second.dequeue() == numbers[3]


@pytest.mark.parametrize("name", FORMS)
def test_a_chain_whose_head_is_due_tomorrow_is_passed_over(
    name: str, open_chain: OpenChain
) -> None:
    chain = open_chain(name)
    numbers = list(chain.prepare(8, 2, stuck=4))
    assert chain.dequeue() == numbers[4]
    chain.finish(numbers[4])
    assert chain.dequeue() in numbers[5:7]


@pytest.mark.parametrize("name", FORMS)
def test_a_message_whose_predecessor_is_already_done_is_ready_at_once(
    name: str, open_chain: OpenChain
) -> None:
    chain = open_chain(name)
    first = chain.enqueue(0)
    assert chain.dequeue() == first
    chain.finish(first)
    second = chain.enqueue(first)
    third = chain.enqueue(second)
    assert chain.dequeue() == second
    chain.finish(second)
    assert chain.dequeue() == third
    chain.finish(third)
    assert chain.dequeue() == 0


@pytest.mark.genuine
def test_a_join_that_passes_over_locked_rows_breaks_the_order_on_mariadb_only(
    open_chain: OpenChain, engine: str
) -> None:
    first, second = open_chain("chain_join"), open_chain("chain_join")
    first.prepare(2, 2)
    assert first.dequeue() == 1
    # MariaDB has no "of": it passes over the predecessor's row too, as if that were gone.
    assert second.dequeue() == {"mariadb": 2}.get(engine, 0)


def test_a_message_begun_before_its_predecessor_ended_breaks_the_order() -> None:
    first = Account(handled=[1, 3], started=[1.0, 5.0], ended=[2.0, 6.0])
    second = Account(handled=[2, 4], started=[1.5, 7.0], ended=[3.0, 8.0])
    assert broken_order([first, second], {1: 0, 2: 1, 3: 2, 4: 3}) == 1
    assert broken_order([second], {2: 1, 4: 0}) == 1  # The predecessor was never done.
