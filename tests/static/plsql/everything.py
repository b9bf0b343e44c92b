"""Everything that the tests give to the grammar of PL/SQL: what is in order, and what is not."""

from tests.static import test_oracle_script, test_oracle_tests, test_plsql
from tests.static.plsql import gate


def everything() -> list[gate.Script]:
    """Return all of sql/oracle, the scripts of `rowq sql`, statements of the tests."""
    return [
        *gate.product(),
        *test_oracle_tests.statements(),
        *test_oracle_script.scripts(),
        *test_oracle_script.scripts_of_releases(),
        *test_plsql.sent_by_text(),
    ]


def planted() -> list[gate.Script]:
    """Return texts with an error of grammar in each."""
    return test_plsql.planted_errors()
