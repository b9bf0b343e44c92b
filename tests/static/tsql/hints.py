"""Table hints, sequences and errors as SQL Server asks for them only when a statement is compiled.

Neither the parser nor the model knows these rules, and Babelfish ignores every hint.
"""

from collections.abc import Callable, Iterator
from typing import Any

from tests.static.tsql.catalog import Catalog, object_name
from tests.static.tsql.dotnet import DOM, is_a, kind, walk

Complaint = tuple[Any, str]

_LEVELS = {
    "NoLock", "ReadUncommitted", "ReadCommitted", "ReadCommittedLock", "RepeatableRead",
    "Serializable", "HoldLock", "Snapshot",
}  # fmt: skip
_SIZES = {"Rowlock", "PagLock", "TabLock", "TabLockX"}
_NOT_FOR_INSERT = {"ReadPast", "NoLock", "ReadUncommitted", "ForceSeek"}
_NO_PLACE_FOR_NUMBERS = (
    "CaseExpression", "IIfCall", "CoalesceExpression", "NullIfExpression", "FunctionCall",
    "QueryDerivedTable", "CommonTableExpression", "ScalarSubquery", "WhereClause", "OutputClause",
    "OutputIntoClause",
)  # fmt: skip
_LONGEST_MESSAGE = 2048


def complaints(fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    """Yield what is wrong with a statement's fragments."""
    for fragment in fragments:
        for class_of, check in _CHECKS:
            if is_a(fragment, class_of):
                yield from check(fragment, fragments, catalog)


def _hints(source: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    del fragments, catalog
    given = hints_of(source)
    for group in (_LEVELS, _SIZES):
        if len(given & group) > 1:
            yield source, f"hints exclude each other: {', '.join(sorted(given & group))}"
    # Error 650 where row versions are on, as they are on Azure unless somebody turned them off.
    if "ReadPast" in given and not given & {"ReadCommittedLock", "RepeatableRead"}:
        yield source, "readpast asks for readcommittedlock beside it"


def _target_of_insert(one: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    del fragments, catalog
    if is_a(one.Target, DOM.NamedTableReference):
        for hint in sorted(hints_of(one.Target) & _NOT_FOR_INSERT):
            yield one.Target, f"the target of an insert cannot have the hint {hint}"


def _seeks(query: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    """Complain of a forced seek without the first column of a key to seek with: error 8622."""
    del fragments
    below = walk(query)
    equal = {name for one in below for name in _equal_columns(one)}
    for one in below:
        if is_a(one, DOM.NamedTableReference) and "ForceSeek" in hints_of(one):
            name = object_name(one.SchemaObject)
            alias = one.Alias.Value.lower() if one.Alias is not None else name.rpartition(".")[2]
            first = catalog.first_columns.get(name, set())
            if first and not {f"{alias}.{each}" for each in first} & equal:
                yield one, f"forceseek, but nothing equals {alias}.{' or '.join(sorted(first))}"


def _equal_columns(one: Any) -> Iterator[str]:
    """Yield the columns that a comparison says are equal to something."""
    sides: list[Any] = []
    if is_a(one, DOM.InPredicate):
        sides = [one.Expression]
    elif is_a(one, DOM.BooleanComparisonExpression) and str(one.ComparisonType) == "Equals":
        sides = [one.FirstExpression, one.SecondExpression]
    for side in sides:
        if is_a(side, DOM.ColumnReferenceExpression):
            yield object_name(side.MultiPartIdentifier)


def _output_into(one: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    del fragments
    if is_a(one.IntoTable, DOM.NamedTableReference):
        name = object_name(one.IntoTable.SchemaObject)
        if name in catalog.constrained:
            yield one, f"output into {name}, which has a check or a foreign key: errors 332, 333"


def _no_numbers(one: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    """Complain of `next value for` where SQL Server does not allow it: errors 11719 to 11741."""
    del fragments, catalog
    if any(is_a(each, DOM.NextValueForExpression) for each in walk(one)):
        yield one, f"next value for cannot stand in {kind(one)}"


def _no_numbers_in_order(one: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    del fragments, catalog
    is_shaped = (
        one.OrderByClause is not None
        or one.TopRowFilter is not None
        or one.OffsetClause is not None
        or one.UniqueRowFilter != DOM.UniqueRowFilter.NotSpecified
    )
    if is_shaped and any(
        is_a(each, DOM.NextValueForExpression)
        for element in one.SelectElements
        for each in walk(element)
    ):
        yield one, "next value for cannot stand beside top, distinct, offset or order by"


def _assignment(query: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    del fragments, catalog
    assigns = [is_a(one, DOM.SelectSetVariable) for one in query.SelectElements]
    if any(assigns) and not all(assigns):
        yield query, "a select that assigns to variables cannot return columns too: error 141"


def _message(one: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    """Complain of a message that does not fit throw, which cuts it or takes another type ill."""
    del catalog
    if not is_a(one.Message, DOM.VariableReference):
        return
    name = one.Message.Name.lower()
    for each in fragments:
        if is_a(each, DOM.DeclareVariableElement) and each.VariableName.Value.lower() == name:
            length = next((part.Value for part in each.DataType.Parameters), "max")
            if length.lower() == "max" or int(length) > _LONGEST_MESSAGE:
                yield one, f"a message of throw is at most nvarchar({_LONGEST_MESSAGE})"


def hints_of(source: Any) -> set[str]:
    """Return the hints of a table, as the parser's names of them."""
    return {
        "ForceSeek" if is_a(one, DOM.ForceSeekTableHint) else str(one.HintKind)
        for one in source.TableHints
    }


_Check = Callable[[Any, list[Any], Catalog], Iterator[Complaint]]
_CHECKS: list[tuple[type, _Check]] = [
    (DOM.NamedTableReference, _hints),
    (DOM.InsertSpecification, _target_of_insert),
    (DOM.QuerySpecification, _seeks),
    (DOM.UpdateSpecification, _seeks),
    (DOM.DeleteSpecification, _seeks),
    (DOM.OutputIntoClause, _output_into),
    (DOM.QuerySpecification, _no_numbers_in_order),
    (DOM.QuerySpecification, _assignment),
    (DOM.ThrowStatement, _message),
    *((getattr(DOM, name), _no_numbers) for name in _NO_PLACE_FOR_NUMBERS),
]
