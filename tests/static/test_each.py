"""Reports of rules on many cases."""

import pytest

from tests.helpers.together import SKIPPED_CASE, Record
from tests.static.each import for_each


def test_rule_reports_all_broken_cases_by_name(record_property: Record) -> None:
    @for_each([("one", 1), ("two", 2), ("three", 3)])
    def test_a_number_is_odd(word: str, number: int) -> None:
        assert number % 2, word

    @for_each(["even", "numbers"])
    def test_a_word_is_short(word: str) -> None:
        assert len(word) < 3

    with pytest.raises(ExceptionGroup, match="1 of 3 break the rule") as one:
        test_a_number_is_odd(record_property)
    assert one.value.exceptions[0].__notes__ == ["Case: two 2."]
    with pytest.raises(ExceptionGroup, match="2 of 2") as both:
        test_a_word_is_short(record_property)
    assert len(both.value.exceptions) == 2


def test_skip_hides_no_other_case(record_property: Record) -> None:
    @for_each(["skipped", "broken", "kept"])
    def test_a_word_is_kept(word: str) -> None:
        if word == "skipped":
            raise pytest.skip.Exception(word)
        assert word == "kept"

    @for_each(["skipped"])
    def test_a_word_is_skipped(word: str) -> None:
        raise pytest.skip.Exception(word)

    with pytest.raises(ExceptionGroup, match="1 of 3 break the rule") as caught:
        test_a_word_is_kept(record_property)
    assert caught.value.exceptions[0].__notes__ == ["Case: broken."]
    with pytest.raises(pytest.skip.Exception, match="skipped"):
        test_a_word_is_skipped(record_property)


def test_skip_reasons_are_recorded() -> None:
    @for_each(["skipped", "kept"])
    def test_a_word_is_kept(word: str) -> None:
        if word == "skipped":
            raise pytest.skip.Exception(f"no {word}")

    recorded: list[tuple[str, object]] = []
    test_a_word_is_kept(lambda name, value: recorded.append((name, value)))
    assert recorded == [(SKIPPED_CASE, "no skipped")]


def test_rule_without_cases_fails(record_property: Record) -> None:
    @for_each([])
    def test_nothing_is_wrong() -> None:
        """Never called."""

    with pytest.raises(AssertionError, match="no cases"):
        test_nothing_is_wrong(record_property)
