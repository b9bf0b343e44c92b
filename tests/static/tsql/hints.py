"""Check table hints, sequences and errors, like SQL Server when it compiles a statement.

The parser and the model do not, and Babelfish ignores hints.
"""

from collections.abc import Callable, Iterator
from itertools import takewhile
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
    """Yield the faults of a statement's fragments."""
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
    # With row versions, Azure's default, the server raises error 650.
    if "ReadPast" in given and not given & {"ReadCommittedLock", "RepeatableRead"}:
        yield source, "readpast requires readcommittedlock"


def _target_of_insert(insert: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    del fragments, catalog
    if is_a(insert.Target, DOM.NamedTableReference):
        for hint in sorted(hints_of(insert.Target) & _NOT_FOR_INSERT):
            yield insert.Target, f"the target of an insert cannot have the hint {hint}"


def _seeks(query: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    """Find a forced seek with an ambiguous index or without a condition: error 8622."""
    del fragments
    below = walk(query)
    equal = {name for fragment in below for name in _equal_columns(fragment)}
    for fragment in below:
        if is_a(fragment, DOM.NamedTableReference) and "ForceSeek" in hints_of(fragment):
            name = object_name(fragment.SchemaObject)
            alias = _alias(fragment)
            first = catalog.first_columns.get(name, set())
            if name in catalog.ambiguous and "Index" not in hints_of(fragment):
                yield fragment, f"forceseek, but two indexes of {name} begin alike: name one"
            if first and not {f"{alias}.{column}" for column in first} & equal:
                yield (
                    fragment,
                    f"forceseek, but nothing equals {alias}.{' or '.join(sorted(first))}",
                )


def _second_key(query: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    """Find a table that is read by another key than its clustered one, without a hint.

    The server would scan a small table instead, and wait for unrelated locked rows. Tables in dbo
    belong to a benchmark of other queues.
    """
    del fragments
    for source, given in _given(query):
        if not object_name(source.SchemaObject).startswith("dbo."):
            yield from _found_by(source, set(given), catalog)


def _given(query: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the tables of a query with the columns that equal earlier known values."""
    pairs = [pair for condition in _conditions(query) for pair in _equal_pairs(condition)]
    before: set[str] = set()
    for source in _own_sources(query):
        alias = _alias(source)
        if is_a(source, DOM.NamedTableReference):
            yield (
                source,
                {
                    column.removeprefix(f"{alias}."): other
                    for column, other in pairs
                    if column.startswith(f"{alias}.") or _is_target(source, query)
                    if not _is_of(other, _aliases(query) - before)
                },
            )
        before.add(alias)


def _joined_seeks(statement: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    """Find a table that is joined by its key with a forced seek without columns.

    A seek by the first column would satisfy the hint and read or lock a whole queue. The target of
    a delete or an update cannot name columns.
    """
    del fragments
    if any("HashJoin" in str(hint.HintKind) for hint in statement.OptimizerHints):
        return
    for query in walk(statement):
        if not is_a(query, _QUERIES):
            continue
        target = getattr(query, "Target", None)
        for source, given in _given(query):
            is_target = target is not None and _alias(source) == _alias(target)
            if not is_target and _lacks_columns(source, given, catalog):
                yield source, "forceseek of a table that is joined by its key: name the columns"


def _lacks_columns(source: Any, given: dict[str, Any], catalog: Catalog) -> bool:
    seeks = [hint for hint in source.TableHints if is_a(hint, DOM.ForceSeekTableHint)]
    key = catalog.clustered.get(object_name(source.SchemaObject), [])
    found = list(takewhile(given.__contains__, key))
    is_joined = any(is_a(given[column], DOM.ColumnReferenceExpression) for column in found)
    if not seeks or not is_joined or len(found) == 1:
        return False
    return bool(seeks[0].ColumnValues.Count < min(2, len(found)))


def _found_by(source: Any, given: set[str], catalog: Catalog) -> Iterator[Complaint]:
    """Find a table whose condition is on another key than its clustered one."""
    name = object_name(source.SchemaObject)
    key = catalog.clustered.get(name)
    if key is None or key[0] in given or hints_of(source) & {"ForceSeek", "Index"}:
        return
    for column in sorted((catalog.first_columns[name] - {key[0]}) & given):
        yield source, f"{name} is found by {column}, beside its clustered key: add forceseek"


def _conditions(query: Any) -> Iterator[Any]:
    """Yield the conditions of a query, including those of its joins."""
    clause = getattr(query, "WhereClause", None)
    waiting = [clause.SearchCondition] if clause is not None else []
    waiting += [join.SearchCondition for join in _joins(query) if is_a(join, DOM.QualifiedJoin)]
    while waiting:
        condition = waiting.pop()
        if is_a(condition, DOM.BooleanParenthesisExpression):
            waiting.append(condition.Expression)
        elif is_a(condition, DOM.BooleanBinaryExpression):
            if str(condition.BinaryExpressionType) == "And":
                waiting += [condition.FirstExpression, condition.SecondExpression]
        else:
            yield condition


def _below_apply(join: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    """Complain of a forced seek below an apply without top: error 8622.

    The optimizer makes a join of such an apply. Then the value that the seek needs is outside, and
    nothing is left to seek by.
    """
    del fragments
    inner = join.SecondTableReference
    if "Apply" in str(join.UnqualifiedJoinType) and is_a(inner, DOM.QueryDerivedTable):
        yield from _outer_seeks(inner.QueryExpression, catalog)


def _below_subquery(subquery: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    """Find the same in a subquery; `exists` of one table is always a plain seek."""
    tested = [fragment.Subquery for fragment in fragments if is_a(fragment, DOM.ExistsPredicate)]
    is_plain = subquery in tested and len(list(_sources(subquery.QueryExpression))) == 1
    if not is_plain:
        yield from _outer_seeks(subquery.QueryExpression, catalog)


def _outer_seeks(query: Any, catalog: Catalog) -> Iterator[Complaint]:
    if not is_a(query, DOM.QuerySpecification) or query.TopRowFilter is not None:
        return
    local = _aliases(query)
    pairs = [pair for fragment in walk(query) for pair in _equal_pairs(fragment)]
    for source in _own_sources(query):
        if not is_a(source, DOM.NamedTableReference) or "ForceSeek" not in hints_of(source):
            continue
        name, alias = object_name(source.SchemaObject), _alias(source)
        for first in sorted(catalog.first_columns.get(name, set())):
            given = [other for column, other in pairs if column == f"{alias}.{first}"]
            if given and all(_is_outer(other, local) for other in given):
                yield source, f"forceseek below an apply without top, by the outer {first}: 8622"


def _is_outer(expression: Any, local: set[str]) -> bool:
    """Return whether an expression is a column of an outer query."""
    if not is_a(expression, DOM.ColumnReferenceExpression):
        return False
    names = object_name(expression.MultiPartIdentifier).split(".")
    return len(names) > 1 and names[-2] not in local


def _is_of(expression: Any, aliases: set[str]) -> bool:
    """Return whether an expression is a column of one of these sources."""
    if not is_a(expression, DOM.ColumnReferenceExpression):
        return False
    names = object_name(expression.MultiPartIdentifier).split(".")
    return len(names) > 1 and names[-2] in aliases


def _own_sources(query: Any) -> Iterator[Any]:
    """Yield the sources of a query from the left, and not those of a query inside it."""
    target = getattr(query, "Target", None)
    if getattr(query, "FromClause", None) is None and target is not None:
        yield target
    yield from _sources(query)


def _sources(query: Any) -> Iterator[Any]:
    """Yield the sources of a query's from clause, from the left to the right."""
    for kind_of, source in _parts(query):
        if kind_of == "source":
            yield source


def _joins(query: Any) -> Iterator[Any]:
    """Yield the joins of a query's from clause."""
    for kind_of, source in _parts(query):
        if kind_of == "join":
            yield source


def _parts(query: Any) -> Iterator[tuple[str, Any]]:
    clause = getattr(query, "FromClause", None)
    waiting = list(clause.TableReferences)[::-1] if clause is not None else []
    while waiting:
        source = waiting.pop()
        is_join = is_a(source, DOM.JoinTableReference)
        yield ("join" if is_join else "source"), source
        if is_join:
            waiting += [source.SecondTableReference, source.FirstTableReference]


def _aliases(query: Any) -> set[str]:
    return {_alias(source) for source in _own_sources(query)}


def _alias(source: Any) -> str:
    alias = getattr(source, "Alias", None)
    if alias is not None:
        return str(alias.Value).lower()
    is_table = is_a(source, DOM.NamedTableReference)
    return object_name(source.SchemaObject).rpartition(".")[2] if is_table else ""


def _is_target(source: Any, query: Any) -> bool:
    return getattr(query, "FromClause", None) is None and source == getattr(query, "Target", None)


def _target(change: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    """Find hints that the target of a delete or an update cannot have."""
    del fragments, catalog
    if not is_a(change.Target, DOM.NamedTableReference):
        return
    name = object_name(change.Target.SchemaObject)
    if change.FromClause is None:
        for hint in sorted(hints_of(change.Target) & {"ForceSeek", "Index"}):
            yield change.Target, f"{hint} of a target needs the table in a from clause"
    for source in _sources(change):
        is_target = is_a(source, DOM.NamedTableReference) and _alias(source) == name
        for hint in source.TableHints if is_target else ():
            if is_a(hint, DOM.ForceSeekTableHint) and hint.ColumnValues.Count:
                yield source, "forceseek of a target cannot name columns"


def _equal_pairs(fragment: Any) -> Iterator[tuple[str, Any]]:
    """Yield each column that is equal to something, and to what."""
    if is_a(fragment, DOM.BooleanComparisonExpression) and str(fragment.ComparisonType) == "Equals":
        sides = [fragment.FirstExpression, fragment.SecondExpression]
        for side, other in (sides, sides[::-1]):
            if is_a(side, DOM.ColumnReferenceExpression):
                yield object_name(side.MultiPartIdentifier), other


def _equal_columns(fragment: Any) -> Iterator[str]:
    """Yield the columns that a comparison fixes."""
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
    """Find `next value for` where SQL Server forbids it: errors 11719 to 11741."""
    del fragments, catalog
    if any(is_a(inner, DOM.NextValueForExpression) for inner in walk(fragment)):
        yield fragment, f"next value for is not allowed in {kind(fragment)}"


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
        yield query, "next value for is not allowed with top, distinct, offset or order by"


def _assignment(query: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    del fragments, catalog
    assigns = [is_a(element, DOM.SelectSetVariable) for element in query.SelectElements]
    if any(assigns) and not all(assigns):
        yield query, "a select that assigns to variables cannot return columns too: error 141"


def _message(throw: Any, fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    """Find a message that throw would truncate or refuse."""
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
    """Return the hints of a table by the parser's names."""
    found = set()
    for hint in source.TableHints:
        is_seek = is_a(hint, DOM.ForceSeekTableHint)
        found.add("ForceSeek" if is_seek else str(hint.HintKind))
        if is_seek and hint.IndexValue is not None:
            found.add("Index")
    return found


_QUERIES = (DOM.QuerySpecification, DOM.UpdateSpecification, DOM.DeleteSpecification)
_Check = Callable[[Any, list[Any], Catalog], Iterator[Complaint]]
_CHECKS: list[tuple[type, _Check]] = [
    (DOM.NamedTableReference, _hints),
    (DOM.InsertSpecification, _target_of_insert),
    *((kind_of_query, check) for kind_of_query in _QUERIES for check in (_seeks, _second_key)),
    (DOM.StatementWithCtesAndXmlNamespaces, _joined_seeks),
    (DOM.UpdateSpecification, _target),
    (DOM.DeleteSpecification, _target),
    (DOM.UnqualifiedJoin, _below_apply),
    (DOM.ScalarSubquery, _below_subquery),
    (DOM.OutputIntoClause, _output_into),
    (DOM.QuerySpecification, _no_numbers_in_order),
    (DOM.QuerySpecification, _assignment),
    (DOM.ThrowStatement, _message),
    *((getattr(DOM, name), _no_numbers) for name in _NO_PLACE_FOR_NUMBERS),
]
