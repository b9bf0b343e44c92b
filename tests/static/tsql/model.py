"""Microsoft's database model, which resolves names across files.

Its public API stops at a file's first error and returns no lines; the service behind it has both.
requirements.txt pins the library's version.
"""

import re
from collections.abc import Iterator
from typing import Any

from tests.static.tsql.dotnet import ANY_MEMBER, MODEL, new_array
from tests.static.tsql.findings import Found

_UNKNOWABLE = re.compile(r"\[(sys|master|msdb|tempdb|INFORMATION_SCHEMA)\]|\[(sp|xp)_\w+\]")
"""System objects, which the model does not contain."""


class Model:
    """An empty SQL Server 2019 database with default options."""

    def __init__(self) -> None:
        self._model = MODEL.TSqlModel(MODEL.SqlServerVersion.Sql150, MODEL.TSqlModelOptions())
        self._service = self._model.GetType().GetField("_service", ANY_MEMBER).GetValue(self._model)
        self._call("SetThrowOnModelErrors", False)
        self._pieces = 0

    def add(self, name: str, statement: str) -> None:
        """Add a statement; blank lines before it keep the line numbers of findings."""
        self._pieces += 1
        self._model.AddOrUpdateObjects(
            statement, f"{name}#{self._pieces}", MODEL.TSqlObjectOptions()
        )

    def findings(self) -> Iterator[Found]:
        """Resolve all names and yield the findings."""
        for error in self._call("GetModelErrors"):
            yield _found(error.SourceName, error)
        for error in self._call("GetModelValidationErrors", new_array([])):
            if not _UNKNOWABLE.search(error.Message):
                yield _found(error.Document.partition("::")[2], error)

    def _call(self, method: str, *arguments: object) -> Any:
        found = self._service.GetType().GetMethod(method, ANY_MEMBER)
        return found.Invoke(self._service, new_array(list(arguments), of_text=False))


def _found(source: str, error: Any) -> Found:
    name = source.rpartition("#")[0]
    words = " ".join(error.Message.split())
    return Found(name, error.Line, error.Column, f"SQL{error.ErrorCode}", words)
