"""The PL/SQL grammar accepts all code and no planted error, as recorded in accepted.txt."""

import pytest

from tests.static.plsql import gate
from tests.static.plsql.everything import everything, planted

pytestmark = [
    pytest.mark.usefixtures("grammar"),
    pytest.mark.slow("a grammar in Node.js reads all files"),
]


@pytest.mark.timeout(900)
def test_grammar_accepts_everything() -> None:
    gate.learn()
    assert not gate.check(everything())


@pytest.mark.timeout(900)
def test_grammar_refuses_every_planted_error() -> None:
    assert not gate.not_refused(planted())


def test_record_of_accepted_files_is_current() -> None:
    assert gate.is_recorded(everything(), planted()), "run: .venv/bin/python -m tests.static.plsql"
