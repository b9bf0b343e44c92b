"""The grammar of PL/SQL accepts all that it is given, and the repository says so."""

import pytest

from tests.static.plsql import gate
from tests.static.plsql.everything import everything

pytestmark = pytest.mark.usefixtures("grammar")


@pytest.mark.timeout(900)
def test_everything_is_accepted_by_the_grammar() -> None:
    gate.learn(everything())
    assert not gate.check(everything())


def test_the_note_of_what_was_accepted_is_of_today() -> None:
    assert gate.are_accepted(everything()), "run: .venv/bin/python -m tests.static.plsql"
