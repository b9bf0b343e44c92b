"""Checks table hints, sequences and errors, as SQL Server does only when it compiles statements.

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
    # The server raises error 650 where row versions are on, as they are on Azure unless somebody
    # turned them off.
    if "ReadPast" in given and not given & {"ReadCommittedLock", "RepeatableRead"}:
        yield source, "readpast asks for readcommittedlock beside it"


def _target_of_insert(insert: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    del fragments, catalog
    if is_a(insert.Target, DOM.NamedTableReference):
        for hint in sorted(hints_of(insert.Target) & _NOT_FOR_INSERT):
            yield insert.Target, f"the target of an insert cannot have the hint {hint}"


def _seeks(query: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    """Complain of a forced seek that may go the wrong way, or has nothing to seek with: 8622."""
    del fragments
    below = walk(query)
    equal = {name for fragment in below for name in _equal_columns(fragment)}
    for fragment in below:
        if is_a(fragment, DOM.NamedTableReference) and "ForceSeek" in hints_of(fragment):
            name = object_name(fragment.SchemaObject)
            alias = (
                fragment.Alias.Value.lower()
                if fragment.Alias is not None
                else name.rpartition(".")[2]
            )
            first = catalog.first_columns.get(name, set())
            if name in catalog.ambiguous and "Index" not in hints_of(fragment):
                yield fragment, f"forceseek, but two indexes of {name} begin alike: name one"
            if first and not {f"{alias}.{column}" for column in first} & equal:
                yield (
                    fragment,
                    f"forceseek, but nothing equals {alias}.{' or '.join(sorted(first))}",
                )


def _equal_columns(fragment: Any) -> Iterator[str]:
    """Yield the columns that a comparison says are equal to something."""
    sides: list[Any] = []
    if is_a(fragment, DOM.InPredicate):
        sides = [fragment.Expression]
    elif (
        is_a(fragment, DOM.BooleanComparisonExpression) and str(fragment.ComparisonType) == "Equals"
    ):
        sides = [fragment.FirstExpression, fragment.SecondExpression]
    for side in sides:
        if is_a(side, DOM.ColumnReferenceExpression):
            yield object_name(side.MultiPartIdentifier)


def _output_into(insert: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    del fragments
    if is_a(insert.IntoTable, DOM.NamedTableReference):
        name = object_name(insert.IntoTable.SchemaObject)
        if name in catalog.constrained:
            yield insert, f"output into {name}, which has a check or a foreign key: errors 332, 333"


def _no_numbers(fragment: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    """Complain of `next value for` where SQL Server does not allow it: errors 11719 to 11741."""
    del fragments, catalog
    if any(is_a(inner, DOM.NextValueForExpression) for inner in walk(fragment)):
        yield fragment, f"next value for cannot stand in {kind(fragment)}"


def _no_numbers_in_order(query: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    del fragments, catalog
    is_shaped = (
        query.OrderByClause is not None
        or query.TopRowFilter is not None
        or query.OffsetClause is not None
        or query.UniqueRowFilter != DOM.UniqueRowFilter.NotSpecified
    )
    if is_shaped and any(
        is_a(inner, DOM.NextValueForExpression)
        for element in query.SelectElements
        for inner in walk(element)
    ):
        yield query, "next value for cannot stand beside top, distinct, offset or order by"


def _assignment(query: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    del fragments, catalog
    assigns = [is_a(element, DOM.SelectSetVariable) for element in query.SelectElements]
    if any(assigns) and not all(assigns):
        yield query, "a select that assigns to variables cannot return columns too: error 141"


def _message(throw: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    """Complain of a message that does not fit throw, which cuts it or takes another type ill."""
    del catalog
    if not is_a(throw.Message, DOM.VariableReference):
        return
    name = throw.Message.Name.lower()
    for fragment in fragments:
        is_declaration = is_a(fragment, DOM.DeclareVariableElement)
        if is_declaration and fragment.VariableName.Value.lower() == name:
            length = next((part.Value for part in fragment.DataType.Parameters), "max")
            if length.lower() == "max" or int(length) > _LONGEST_MESSAGE:
                yield throw, f"a message of throw is at most nvarchar({_LONGEST_MESSAGE})"


def hints_of(source: Any) -> set[str]:
    """Return the hints of a table, as the parser's names of them."""
    return {
        "ForceSeek" if is_a(hint, DOM.ForceSeekTableHint) else str(hint.HintKind)
        for hint in source.TableHints
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
