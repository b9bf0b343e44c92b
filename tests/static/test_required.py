"""A static check without its programs is skipped, or fails if its variable is set."""

import pytest

from tests.static.required import need

VARIABLE = "ROWQ_REQUIRE_THIS"


@pytest.mark.parametrize("value", ["", "1"])
def test_missing_program_is_a_skip_or_a_failure(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(VARIABLE, value)
    need(None, VARIABLE)
    outcome = pytest.fail.Exception if value else pytest.skip.Exception
    text = "ROWQ_REQUIRE_THIS is set, but no grammar" if value else "no grammar.*ROWQ_REQUIRE_THIS"
    with pytest.raises(outcome, match=text):
        need("no grammar", VARIABLE)
