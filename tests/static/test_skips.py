"""The reason of every skip contains a remedy."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.engines.base import REMEDIES, TO_RUN, Server
from tests.engines.sqlserver.babelfish_faults import FAULTS
from tests.static.each import for_each
from tests.static.sources import ROOT

FILES = sorted((ROOT / "tests").rglob("*.py"))
SKIPS = {"pytest.skip", "pytest.mark.skip", "pytest.mark.skipif", "pytest.importorskip"}
WORDS = TO_RUN.strip("; ")


def skips(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and reason of each skip in a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in SKIPS:
            given = [word.value for word in node.keywords if word.arg == "reason"]
            yield node.lineno, " ".join(map(ast.unparse, given or node.args))


def reasons_by_name(tree: ast.AST) -> dict[str, str]:
    """Return a file's assignments by name."""
    return {
        target.id: ast.unparse(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


@for_each(FILES)
def test_skip_reason_has_a_remedy(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = reasons_by_name(tree)
    reasons = [(line, named.get(reason, reason)) for line, reason in skips(tree)]
    # A skip for a module of rowq follows one for its driver, which has the reason.
    reasons = [(line, reason) for line, reason in reasons if not reason.startswith("'rowq.")]
    assert [
        line for line, reason in reasons if WORDS not in reason and "TO_RUN" not in reason
    ] == []


def test_skip_without_remedy_is_found() -> None:
    tree = ast.parse('pytest.skip("not here")\npytest.mark.skipif(True, reason="no fork")')
    assert list(skips(tree)) == [(1, "'not here'"), (2, "'no fork'")]


def test_every_capability_has_a_remedy() -> None:
    assert Server.__doc__
    listed = Server.__doc__.partition("capabilities:")[2].splitlines()[1:]
    assert {line.split()[0] for line in listed if line[8:9].strip()} == set(REMEDIES)


def test_babelfish_faults_name_existing_tests() -> None:
    for fault in FAULTS:
        for test in fault.tests:
            file, _, name = test.partition("::")
            text = (ROOT / "tests" / file).read_text(encoding="utf-8")
            assert f"def {name.partition('[')[0]}(" in text, test
