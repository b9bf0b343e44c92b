"""Run the checks inside .NET: read scripts as JSON, write findings. gate.py starts it."""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

from tests.static.tsql import collations, hints, rules
from tests.static.tsql.catalog import Catalog
from tests.static.tsql.dotnet import DOM, is_a, kind, parse, walk
from tests.static.tsql.findings import Found
from tests.static.tsql.model import Model

_MODELLED = re.compile(
    r"(Create(OrAlter)?(Procedure|Function|View|Trigger)|Create(Table|Index|Sequence|Schema|Role|"
    r"Type\w*|PartitionFunction|PartitionScheme|User|Synonym)|AlterTableAddTableElement|AlterRole|"
    r"Grant|Deny|Revoke)Statement"
)
"""Definitions, which the model takes unchanged."""

_UNMODELLED = ("PredicateSetStatement", "UseStatement", "PrintStatement")
_OR_ALTER = re.compile(r"(?i)\bor\s+alter\b")


class Checker:
    """Collects scripts in one model, and returns the findings."""

    def __init__(self, asked: set[str]) -> None:
        self._asked = asked
        self._found: set[Found] = set()
        self._model = Model()
        self._catalog = Catalog()
        self._statements: list[tuple[str, list[Any]]] = []
        self._made: set[tuple[str, str]] = set()
        self._loose = 0

    def add(self, name: str, text: str) -> None:
        """Check a script's syntax and add it to the model."""
        tree, errors = parse(text)
        self._report_syntax(name, errors, "")
        if errors:
            return
        self._report_syntax(name, parse(text, level=140)[1], "not in SQL Server 2017: ")
        for batch in tree.Batches:
            self._add_batch(name, text, batch)

    def findings(self) -> list[Found]:
        """Resolve all names and return the findings in the requested scripts, in order."""
        found = self._found.union(self._model.findings())
        for name, fragments in self._statements:
            for where, words in (
                *rules.complaints(fragments, self._catalog),
                *hints.complaints(fragments, self._catalog),
                *collations.complaints(fragments, self._catalog),
            ):
                found.add(Found(name, where.StartLine, where.StartColumn, "rule", words))
        return sorted(problem for problem in found if problem.name in self._asked)

    def _add_batch(self, name: str, text: str, batch: Any) -> None:
        """Add a batch's definitions to the model, and its other statements as a procedure."""
        start = batch.StartOffset
        rest = text[start : start + batch.FragmentLength]
        for statement in batch.Statements:
            for definition in definitions(statement):
                self._add_definition(name, text, definition)
                rest = blanked(rest, definition, start)
            if kind(statement) in _UNMODELLED:
                rest = blanked(rest, statement, start)
            fragments = walk(statement)
            self._catalog.add(fragments)
            if name in self._asked:
                self._statements.append((name, fragments))
            for literal in literals_run(fragments):
                self._add_text(name, literal)
        self._loose += 1
        words = rest.lstrip()
        before = rest[: len(rest) - len(words)].count("\n")
        lines = "\n" * (batch.StartLine - 1 + before)
        self._model.add(name, f"{lines}create procedure [batch{self._loose}] as {words}")

    def _add_text(self, name: str, literal: Any) -> None:
        """Check a dynamic statement, such as `exec (N'create schema rowq')`."""
        lines = "\n" * (literal.StartLine - 1)
        self.add(name, lines + literal.Value)

    def _add_definition(self, name: str, text: str, statement: Any) -> None:
        """Add a definition to the model, with `create` for `create or alter`.

        Several scripts may create the schema and its owner.
        """
        if is_a(statement, DOM.CreateSchemaStatement) or is_a(statement, DOM.CreateUserStatement):
            made = (kind(statement), statement.Name.Value)
            if made in self._made:
                return
            self._made.add(made)
        start = statement.StartOffset
        words = text[start : start + statement.FragmentLength]
        if kind(statement).startswith("CreateOrAlter"):
            words = _OR_ALTER.sub(lambda found: re.sub(r"\S", " ", found.group()), words, count=1)
        place = "\n" * (statement.StartLine - 1) + " " * (statement.StartColumn - 1)
        self._model.add(name, place + words)

    def _report_syntax(self, name: str, errors: list[Any], why: str) -> None:
        for error in errors:
            code = f"syntax {error.Number}"
            self._found.add(Found(name, error.Line, error.Column, code, why + error.Message))


def blanked(text: str, fragment: Any, origin: int, instead: str = "print 0") -> str:
    """Return a text of the same length with a statement replaced by a harmless one.

    text: a part of a script, which begins at `origin`.
    """
    start = fragment.StartOffset - origin
    end = start + fragment.FragmentLength
    blanks = re.sub(r"\S", " ", text[start:end])
    return text[:start] + instead + blanks[len(instead) :] + text[end:]


def definitions(statement: Any) -> Iterator[Any]:
    """Yield the definitions in a statement, also after an `if`."""
    if _MODELLED.fullmatch(kind(statement)):
        yield statement
    elif is_a(statement, DOM.IfStatement):
        yield from definitions(statement.ThenStatement)
        if statement.ElseStatement is not None:
            yield from definitions(statement.ElseStatement)
    elif is_a(statement, DOM.BeginEndBlockStatement):
        for inner in statement.StatementList.Statements:
            yield from definitions(inner)


def literals_run(fragments: list[Any]) -> Iterator[Any]:
    """Yield the literals that a statement, or one inside it, runs as a statement."""
    for fragment in fragments:
        if is_a(fragment, DOM.ExecutableStringList) and fragment.Strings.Count == 1:
            yield from (text for text in fragment.Strings if is_a(text, DOM.StringLiteral))


def main() -> None:
    """Read the work from standard input, write the findings to standard output."""
    work = json.load(sys.stdin)
    answers = []
    for documents in work["databases"]:
        checker = Checker(set(work["asked"]))
        for document in documents:
            checker.add(document["name"], document["text"])
        answers.append([problem._asdict() for problem in checker.findings()])
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
