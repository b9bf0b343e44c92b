"""A static check whose programs are missing says so, and fails where they must be there."""

import pytest

from tests.static.required import need

VARIABLE = "ROWQ_REQUIRE_THIS"


def test_what_is_there_is_not_spoken_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    need(None, VARIABLE)


@pytest.mark.parametrize("value", [None, ""])
def test_what_is_missing_is_a_skip_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(pytest.skip.Exception, match=r"no grammar.*ROWQ_REQUIRE_THIS"):
        need("no grammar", VARIABLE)


def test_what_is_missing_and_required_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(pytest.fail.Exception, match="ROWQ_REQUIRE_THIS is set, but no grammar"):
        need("no grammar", VARIABLE)
