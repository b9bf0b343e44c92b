"""The grammar of PL/SQL accepts what is in order and no planted error; the repository says so."""

import pytest

from tests.static.plsql import gate
from tests.static.plsql.everything import everything, planted

pytestmark = [
    pytest.mark.usefixtures("grammar"),
    pytest.mark.slow("a grammar in Node.js reads all files"),
]


@pytest.mark.timeout(900)
def test_everything_is_accepted_by_the_grammar() -> None:
    gate.learn()
    assert not gate.check(everything())


@pytest.mark.timeout(900)
def test_every_planted_error_is_refused() -> None:
    assert not gate.not_refused(planted())


def test_the_note_of_what_was_accepted_is_of_today() -> None:
    assert gate.is_noted(everything(), planted()), "run: .venv/bin/python -m tests.static.plsql"
