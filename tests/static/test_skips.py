"""The reason of every skip says what to do to have the test run: no test is given up for good."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.engines.base import REMEDIES, TO_RUN, Server
from tests.static.each import for_each
from tests.static.sources import ROOT

FILES = sorted((ROOT / "tests").rglob("*.py"))
SKIPS = {"pytest.skip", "pytest.mark.skip", "pytest.mark.skipif", "pytest.importorskip"}
WORDS = TO_RUN.strip("; ")


def skips(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the source of the reason of each skip in a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in SKIPS:
            given = [word.value for word in node.keywords if word.arg == "reason"]
            yield node.lineno, " ".join(map(ast.unparse, given or node.args))


def reasons_by_name(tree: ast.AST) -> dict[str, str]:
    """Return the texts that a file gives a name, by that name."""
    return {
        target.id: ast.unparse(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


@for_each(FILES)
def test_every_skip_says_how_to_have_the_test_run(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = reasons_by_name(tree)
    told = [(line, named.get(reason, reason)) for line, reason in skips(tree)]
    # A module of rowq's that does not load has said why before: its driver is asked for first.
    told = [(line, reason) for line, reason in told if not reason.startswith("'rowq.")]
    assert [line for line, reason in told if WORDS not in reason and "TO_RUN" not in reason] == []


def test_a_skip_without_such_words_is_found() -> None:
    tree = ast.parse('pytest.skip("not here")\npytest.mark.skipif(True, reason="no fork")')
    assert list(skips(tree)) == [(1, "'not here'"), (2, "'no fork'")]


def test_there_is_a_remedy_for_every_capability() -> None:
    assert Server.__doc__
    listed = Server.__doc__.partition("capabilities:")[2].splitlines()[1:]
    assert {line.split()[0] for line in listed if line[8:9].strip()} == set(REMEDIES)
