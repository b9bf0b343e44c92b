"""The list of what a Babelfish is given is fresh, and no rule of its shim is a left-over."""

from tests.engines.babelfish_list import PAGE, page, unused


def test_the_list_of_what_babelfish_executes_is_fresh() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python -m tests.engines.babelfish_list"


def test_every_rule_of_the_shim_changes_something() -> None:
    assert unused() == []
