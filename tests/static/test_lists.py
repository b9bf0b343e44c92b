"""The generator adds an option of a message where the SQL only passes it on."""

import re
from dataclasses import replace

import pytest

from rowq.contract import Contract, load_contract
from sql.generate import lists
from tests.static.sources import ENGINES

ADDED = {
    "mysql": {
        "enqueue": ["p_added_one"] * 3,
        "get_message": ["m.added_one", "null", "added_one"],
        "predecessors": [],
        "publish": ["p_added_one"] * 2,
        "put": ["null"],
        "schedules": ["null"] * 3,
    },
    "oracle": {
        "enqueue": ["p_added_one"] * 2,
        "get_message": ["m.added_one", "null", "added_one"],
        "predecessors": [],
        "publish": ["p_added_one"] * 2,
        "schedules": ["null"] * 2,
        "types": ["added_one"],
    },
    "postgres": {
        "enqueue": ["p_added_one", "p_added_one", "added_one", "p_added_one"],
        "get_message": ["m.added_one", "null"],
        "find_message": ["g.added_one"],
        "predecessors": ["null"],
        "publish": ["p_added_one"] * 2,
        "schedules": ["null"],
    },
    "sqlserver": {
        "enqueue": ["@added_one", "added_one", "@added_one"],
        "get_message": ["m.added_one", "null", "added_one"],
        "predecessors": [],
        "publish": ["@added_one"] * 2,
        "schedules": ["null"] * 3,
    },
}
"""By file, the added texts in order."""


def with_option(contract: Contract) -> Contract:
    """Return a contract with one more option, which get_message returns."""
    routines = dict(contract.routines)
    for name in ("enqueue", "publish"):
        entry = routines[name]
        one = replace(entry.parameters[-1], name="added_one", type="text")
        routines[name] = replace(entry, parameters=(*entry.parameters, one))
    for name in ("get_message", "find_message"):
        shown = routines[name]
        column = replace(shown.columns[-1], name="added_one", type="text")
        routines[name] = replace(shown, columns=(*shown.columns, column))
    return replace(contract, routines=routines)


@pytest.fixture
def more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the generator one more option, which the helpers of store.sql have."""
    contract = with_option(load_contract())
    parameters = lists.helper_parameters
    newest = load_contract().routine("enqueue").parameters[-1].name

    def taken(engine: str, helper: str) -> list[str]:
        names = parameters(engine, helper)
        last = next(name for name in names if name.endswith(newest))
        at = names.index(last) + 1
        return [*names[:at], last.replace(newest, "added_one"), *names[at:]]

    monkeypatch.setattr(lists, "load_contract", lambda: contract)
    monkeypatch.setattr(lists, "helper_parameters", taken)


@pytest.mark.usefixtures("more")
@pytest.mark.parametrize("engine", ENGINES)
def test_generator_adds_an_option_to_each_call_and_list(engine: str) -> None:
    added = {}
    for path, complete in lists.files().items():
        if path.parents[1].name == engine:
            old = path.read_text(encoding="utf-8")
            new = complete(old)
            assert complete(new) == new
            assert max(map(len, new.splitlines())) <= max(100, *map(len, old.splitlines()))
            added[path.stem] = new_words(old, new)
    assert added == ADDED[engine]


def new_words(old: str, new: str) -> list[str]:
    """Return the added options and nulls of a text."""
    words = re.compile(r"(?<![\w.@])(?:[gm]\.|p_|@)?added_one\b|(?<![\w.])null\b")
    before, after = words.findall(old), words.findall(new)
    for word in set(before):
        for _ in range(before.count(word)):
            after.remove(word)
    return after


def test_generator_leaves_complete_lists_as_they_are() -> None:
    for path, complete in lists.files().items():
        text = path.read_text(encoding="utf-8")
        assert complete(text) == text, path


def test_unknown_helper_is_refused() -> None:
    with pytest.raises(ValueError, match=r"store\.sql of mysql has no internal_keep"):
        lists.helper_parameters("mysql", "internal_keep")
