"""Checks that Microsoft's model lacks: counts, arguments, functions, columns of variables."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.static.tsql import builtins
from tests.static.tsql.catalog import Catalog, Table, object_name
from tests.static.tsql.dotnet import DOM, is_a, kind
from tests.static.tsql.scope import Scope, first_query

Complaint = tuple[Any, str]
"""A fragment and its fault."""

_COLLATION = re.compile(
    r"database_default|Latin1_General_(100_)?(BIN2|C[IS]_A[IS](_KS)?(_WS)?(_SC)?)(_UTF8)?"
)


def complaints(fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    """Yield the faults of a statement's fragments."""
    scope = Scope(catalog, fragments)
    for fragment in fragments:
        for class_of, check in _CHECKS.items():
            if is_a(fragment, class_of):
                yield from check(fragment, scope, catalog)
    if is_a(fragments[0], DOM.ProcedureStatementBodyBase):
        yield from _unknown_columns(fragments, scope)


def _function(call: Any, scope: Scope, catalog: Catalog) -> Iterator[Complaint]:
    del scope
    name, count = call.FunctionName.Value.lower(), call.Parameters.Count
    if call.CallTarget is not None:
        yield from _own_function(call, name, count, catalog)
    elif name not in builtins.FUNCTIONS:
        yield call, f"unknown function {name}: see builtins.py"
    elif not builtins.FUNCTIONS[name][0] <= count <= builtins.FUNCTIONS[name][1]:
        yield call, f"{name} does not take {count} arguments"
    elif name in builtins.DATE_FUNCTIONS:
        part = call.Parameters[0]
        word = part.MultiPartIdentifier.Identifiers[0].Value
        if word not in builtins.DATE_PARTS:
            yield part, f"{word} is not one of the parts of a date in builtins.py"


def _own_function(call: Any, name: str, count: int, catalog: Catalog) -> Iterator[Complaint]:
    if is_a(call.CallTarget, DOM.MultiPartIdentifierCallTarget):
        full = f"{object_name(call.CallTarget.MultiPartIdentifier)}.{name}"
        known = catalog.routines.get(full)
        if known is not None and count != len(known):
            yield call, f"{full} takes {len(known)} arguments, not {count}"


def _global(fragment: Any, scope: Scope, catalog: Catalog) -> Iterator[Complaint]:
    del scope, catalog
    if fragment.Name.lower() not in builtins.GLOBALS:
        yield fragment, f"unknown variable {fragment.Name}: see builtins.py"


def _collation(fragment: Any, scope: Scope, catalog: Catalog) -> Iterator[Complaint]:
    del scope, catalog
    named = getattr(fragment, "Collation", None)
    if named is not None and not _COLLATION.fullmatch(named.Value):
        yield named, f"unknown collation {named.Value}"


def _insert(insert: Any, scope: Scope, catalog: Catalog) -> Iterator[Complaint]:
    del catalog
    table = _table(insert.Target, scope)
    given = [_last(column) for column in insert.Columns]
    yield from _written(insert, table, given)
    for count in _widths(insert.InsertSource):
        if given and count != len(given):
            yield insert, f"{len(given)} columns, but {count} values"


def _output_into(clause: Any, scope: Scope, catalog: Catalog) -> Iterator[Complaint]:
    del catalog
    given = [_last(column) for column in clause.IntoTableColumns]
    yield from _written(clause, _table(clause.IntoTable, scope), given)
    count = _width(clause.SelectColumns)
    if given and count is not None and count != len(given):
        yield clause, f"{len(given)} columns, but {count} values"


def _execute(execute: Any, scope: Scope, catalog: Catalog) -> Iterator[Complaint]:
    del scope
    name = object_name(execute.ProcedureReference.ProcedureReference.Name)
    given = list(execute.Parameters)
    if (system := name.rpartition(".")[2]) in builtins.PROCEDURES:
        known = builtins.PROCEDURES[system]
        named = {
            argument.Variable.Name.lower() for argument in given if argument.Variable is not None
        }
        if known and (wrong := named - known):
            yield execute, f"{system} has no parameter {', '.join(sorted(wrong))}"
    elif name in catalog.routines:
        yield from _arguments(execute, name, given, catalog)
    elif system.startswith("sp_"):
        yield execute, f"unknown procedure {system}: see builtins.py"


def _arguments(execute: Any, name: str, given: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    parameters = catalog.routines[name]
    if len(given) > len(parameters):
        yield execute, f"{name} has {len(parameters)} parameters, not {len(given)}"
        return
    by_name = {parameter.name: parameter for parameter in parameters}
    missing = {parameter.name for parameter in parameters if not parameter.has_default}
    for place, argument in enumerate(given):
        said = argument.Variable.Name.lower() if argument.Variable is not None else None
        parameter = by_name.get(said) if said else parameters[place]
        if parameter is None:
            yield argument, f"{name} has no parameter {said}"
            continue
        missing.discard(parameter.name)
        if parameter.is_output != argument.IsOutput:
            yield argument, f"{parameter.name} of {name} is output in one place only"
    if missing:
        yield execute, f"{name} also needs {', '.join(sorted(missing))}"


def _written(where: Any, table: Table | None, given: list[str]) -> Iterator[Complaint]:
    """Complain of columns that an insert into a table cannot or must name."""
    if table is None or not given:
        return
    for name in given:
        if name not in table:
            yield where, f"the table has no column {name}"
        elif not table[name].is_writable:
            yield where, f"column {name} is computed, or numbered by the server"
    needed = {name for name, column in table.items() if column.is_needed} - set(given)
    if needed:
        yield where, f"no value for {', '.join(sorted(needed))}"


def _unknown_columns(fragments: list[Any], scope: Scope) -> Iterator[Complaint]:
    parts = [_part_of_date(fragment) for fragment in fragments]
    for fragment in fragments:
        is_column = is_a(fragment, DOM.ColumnReferenceExpression)
        if is_column and fragment.MultiPartIdentifier is not None and fragment not in parts:
            names = [
                identifier.Value.lower() for identifier in fragment.MultiPartIdentifier.Identifiers
            ]
            if fault := _fault_of_column(names, scope):
                yield fragment, fault


def _part_of_date(call: Any) -> Any:
    """Return the word in a call that looks like a column and is a part of a date, or None."""
    if not is_a(call, DOM.FunctionCall):
        return None
    is_dated = call.FunctionName.Value.lower() in builtins.DATE_FUNCTIONS
    return call.Parameters[0] if is_dated and call.Parameters.Count else None


def _fault_of_column(names: list[str], scope: Scope) -> str | None:
    """Return what is wrong with a column, given with the name before it or without."""
    source, column = ("", *names)[-2:]
    if len(names) == 1:
        is_known = column in scope.names or not scope.is_whole
        return None if is_known else f"no source has a column {column}"
    columns = scope.by_alias.get(source)
    if len(names) > 2 or (columns and ("*" in columns or column in columns)):
        return None
    return f"{source} has no column {column}" if columns else f"nothing is called {source}"


def _table(target: Any, scope: Scope) -> Table | None:
    if is_a(target, DOM.NamedTableReference):
        return scope.tables.get(object_name(target.SchemaObject))
    if is_a(target, DOM.VariableTableReference):
        return scope.tables.get(target.Variable.Name.lower())
    return None


def _last(column: Any) -> str:
    return str(list(column.MultiPartIdentifier.Identifiers)[-1].Value).lower()


def _widths(source: Any) -> Iterator[int]:
    """Yield the number of values in each row of an insert's source, if known."""
    if is_a(source, DOM.ValuesInsertSource):
        yield from (row.ColumnValues.Count for row in source.RowValues)
    elif is_a(source, DOM.SelectInsertSource):
        width = _width(first_query(source.Select).SelectElements)
        if width is not None:
            yield width


def _width(elements: Iterable[Any]) -> int | None:
    is_plain = all(kind(element) == "SelectScalarExpression" for element in elements)
    return len(list(elements)) if is_plain else None


_CHECKS: dict[type, Callable[[Any, Scope, Catalog], Iterator[Complaint]]] = {
    DOM.FunctionCall: _function,
    DOM.GlobalVariableExpression: _global,
    DOM.PrimaryExpression: _collation,
    DOM.ColumnDefinition: _collation,
    DOM.InsertSpecification: _insert,
    DOM.OutputIntoClause: _output_into,
    DOM.ExecutableProcedureReference: _execute,
}
