"""All texts for the PL/SQL grammar: correct ones, and ones with planted errors."""

from tests.static import test_oracle_script, test_oracle_tests, test_plsql
from tests.static.plsql import gate


def everything() -> list[gate.Script]:
    """Return sql/oracle, the scripts of `rowq sql` and the statements of the tests."""
    return [
        *gate.product(),
        *test_oracle_tests.statements(),
        *test_oracle_script.scripts(),
        *test_oracle_script.scripts_of_releases(),
        *test_plsql.dynamic_scripts(),
    ]


def planted() -> list[gate.Script]:
    """Return texts with one syntax error each."""
    return test_plsql.planted_errors()
