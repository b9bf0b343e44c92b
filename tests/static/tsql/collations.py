"""Find collation conflicts in expressions: errors 451 and 468.

The server raises them when it compiles a batch. A column has the collation of its table; columns of
system views have the catalog's, except fixed ones. A literal or a variable takes the other
operand's collation. Columns of a `values` list count as columns of the database's collation.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tests.static.tsql.catalog import (
    DATABASE,
    Catalog,
    Table,
    collation_of,
    is_text,
    object_name,
    table_of,
)
from tests.static.tsql.dotnet import DOM, children, is_a, kind

Complaint = tuple[Any, str]

CATALOG = "catalog_default"
FIXED = "Latin1_General_CI_AS_KS_WS"
KEYS_OF_JSON = "Latin1_General_BIN2"
"""Collations of names in system views, of fixed words there, and of openjson's keys."""

_FIXED_COLUMNS = frozenset({"type", "permission_name", "state"})
_VARIANTS = frozenset({"value"})
"""Columns of type sql_variant: a cast to text has no own collation."""
_QUERIES = (DOM.QuerySpecification, DOM.UpdateSpecification, DOM.DeleteSpecification)

# The arguments that determine the collation of a function's result; None means all.
_PASSING: dict[str, slice | None] = {
    **dict.fromkeys(["concat", "concat_ws", "choose", "string_agg", "translate"]),
    "replace": slice(0, 3),
    **dict.fromkeys(
        ["isnull", "lower", "ltrim", "max", "min", "quotename", "replicate", "reverse", "rtrim",
         "string_escape", "stuff", "substring", "trim", "upper", "json_value", "json_query"],
        slice(0, 1),
    ),
}  # fmt: skip


class Collation(NamedTuple):
    """The collation of an expression, and whether `collate` sets it."""

    name: str
    is_explicit: bool = False


Source = Mapping[str, "Collation | None"]
Sources = dict[str, Source]


class _SystemColumns(dict[str, "Collation | None"]):
    """The columns of a system view, found by rule instead of a list."""

    def __missing__(self, name: str) -> Collation | None:
        if name in _VARIANTS:
            return None
        is_fixed = name in _FIXED_COLUMNS or name.endswith("_desc")
        return Collation(FIXED if is_fixed else CATALOG)


class Collations:
    """Checks the statements of a script against a catalog."""

    def __init__(self, catalog: Catalog, fragments: list[Any]) -> None:
        self._catalog = catalog
        self._tables: dict[str, Table] = dict(catalog.tables)
        self._expressions: dict[str, Source] = {}
        self._found: list[Complaint] = []
        for fragment in fragments:
            if is_a(fragment, DOM.DeclareTableVariableBody):
                self._tables[fragment.VariableName.Value.lower()] = table_of(fragment.Definition)
            elif is_a(fragment, DOM.DeclareVariableElement) and fragment.DataType.Name is not None:
                type_name = object_name(fragment.DataType.Name)
                if type_name in catalog.types:
                    self._tables[fragment.VariableName.Value.lower()] = catalog.types[type_name]

    def complaints(self, statement: Any) -> Iterator[Complaint]:
        """Yield the collation conflicts in a statement."""
        self._visit(statement, {})
        yield from dict.fromkeys(self._found)

    def _visit(self, fragment: Any, outer: Sources) -> None:
        sources = outer
        if is_a(fragment, DOM.CommonTableExpression):
            name = fragment.ExpressionName.Value.lower()
            self._expressions[name] = self._columns(fragment.QueryExpression, fragment.Columns, {})
        if is_a(fragment, _QUERIES):
            sources = {**outer, **self._sources(fragment, outer)}
        if is_a(fragment, DOM.ScalarExpression):
            self._collation(fragment, sources)
        for operands in _compared(fragment):
            self._meet(fragment, [self._collation(operand, sources) for operand in operands])
        if is_a(fragment, DOM.BinaryQueryExpression):
            self._columns(fragment, (), outer)
        for child in children(fragment):
            self._visit(child, sources)

    def _sources(self, query: Any, outer: Sources) -> Sources:
        """Return the sources of a query by alias."""
        found: Sources = {}
        clause = getattr(query, "FromClause", None)
        for reference in _references(clause.TableReferences if clause is not None else ()):
            name, columns = self._source(reference, {**outer, **found})
            alias = getattr(reference, "Alias", None)
            found[alias.Value.lower() if alias is not None else name] = columns
        target = getattr(query, "Target", None)
        if clause is None and target is not None and is_a(target, DOM.NamedTableReference):
            name, columns = self._source(target, outer)
            found[name] = columns
        for name in ("inserted", "deleted"):
            found.setdefault(name, {})
        return found

    def _source(self, reference: Any, outer: Sources) -> tuple[str, Source]:
        match kind(reference):
            case "NamedTableReference":
                name = object_name(reference.SchemaObject)
                if name.startswith("sys."):
                    return name.rpartition(".")[2], _SystemColumns()
                known = self._expressions.get(name)
                return name.rpartition(".")[2], known or self._stored(name)
            case "VariableTableReference":
                name = reference.Variable.Name.lower()
                return name, self._stored(name)
            case "QueryDerivedTable":
                return "", self._columns(reference.QueryExpression, reference.Columns, outer)
            case "InlineDerivedTable":
                return "", self._values(reference, outer)
            case "OpenJsonTableReference":
                return "openjson", self._json(reference, outer)
        return "", {}

    def _stored(self, name: str) -> Source:
        columns = self._tables.get(name, {})
        return {
            column: Collation(found.collation) if found.collation else None
            for column, found in columns.items()
        }

    def _values(self, reference: Any, outer: Sources) -> Source:
        rows = [
            [self._collation(value, outer) for value in row.ColumnValues]
            for row in reference.RowValues
        ]
        first = next(iter(reference.RowValues)).ColumnValues
        names = [column.Value.lower() for column in reference.Columns]
        return {
            name: self._meet(reference, [row[place] for row in rows])
            or (Collation(DATABASE) if is_a(first[place], DOM.StringLiteral) else None)
            for place, name in enumerate(names)
        }

    def _json(self, reference: Any, outer: Sources) -> Source:
        if not reference.SchemaDeclarationItems.Count:
            value = self._collation(reference.Variable, outer)
            return {"key": Collation(KEYS_OF_JSON), "value": value, "type": None}
        columns = {}
        for item in reference.SchemaDeclarationItems:
            name = collation_of(item.ColumnDefinition)
            columns[item.ColumnDefinition.ColumnIdentifier.Value.lower()] = (
                Collation(name) if name else None
            )
        return columns

    def _columns(self, query: Any, listed: Iterable[Any], outer: Sources) -> Source:
        """Return the collations of a query's columns, and record conflicts in a union."""
        if kind(query) == "QueryParenthesisExpression":
            return self._columns(query.QueryExpression, listed, outer)
        if is_a(query, DOM.BinaryQueryExpression):
            first = self._columns(query.FirstQueryExpression, listed, outer)
            second = self._columns(query.SecondQueryExpression, (), outer)
            pairs = zip(first.items(), second.values(), strict=False)
            return {name: self._meet(query, [one, other]) for (name, one), other in pairs}
        sources = {**outer, **self._sources(query, outer)}
        names = [name.Value.lower() for name in listed]
        columns: dict[str, Collation | None] = {}
        for place, element in enumerate(query.SelectElements):
            if is_a(element, DOM.SelectScalarExpression):
                name = names[place] if names else _name_of(element) or f"#{place}"
                columns[name] = self._collation(element.Expression, sources)
        return columns

    def _collation(self, expression: Any, sources: Sources) -> Collation | None:
        """Return the collation of an expression; None if it takes the other operand's."""
        named = getattr(expression, "Collation", None)
        if named is not None:
            return Collation(str(named.Value), is_explicit=True)
        if is_a(expression, DOM.ColumnReferenceExpression):
            return _column(expression, sources)
        if is_a(expression, DOM.ScalarSubquery):
            return next(iter(self._columns(expression.QueryExpression, (), sources).values()), None)
        operands = _operands(expression)
        return self._meet(expression, [self._collation(part, sources) for part in operands])

    def _meet(self, where: Any, collations: Iterable[Collation | None]) -> Collation | None:
        """Return the collation of an expression from its operands, and record a conflict."""
        given = [collation for collation in collations if collation is not None]
        explicit = [collation for collation in given if collation.is_explicit]
        names = {collation.name.lower() for collation in explicit or given}
        if len(names) > 1:
            self._found.append(
                (where, f"collation conflict, add collate: {', '.join(sorted(names))}")
            )
        return next(iter(explicit or given), None)


def complaints(fragments: list[Any], catalog: Catalog) -> Iterator[Complaint]:
    """Yield the fragments with a collation conflict."""
    yield from Collations(catalog, fragments).complaints(fragments[0])


def _references(references: Iterable[Any]) -> Iterator[Any]:
    """Yield the sources of a from clause in order."""
    for reference in references:
        if is_a(reference, DOM.JoinTableReference):
            yield from _references((reference.FirstTableReference, reference.SecondTableReference))
        elif is_a(reference, DOM.JoinParenthesisTableReference):
            yield from _references((reference.Join,))
        else:
            yield reference


def _column(reference: Any, sources: Sources) -> Collation | None:
    if reference.MultiPartIdentifier is None:
        return None
    names = [name.Value.lower() for name in reference.MultiPartIdentifier.Identifiers]
    if len(names) > 1:
        source = sources.get(names[-2], {})
        is_known = names[-1] in source or isinstance(source, _SystemColumns)
        return source[names[-1]] if is_known else None
    known = [source for source in sources.values() if names[-1] in source]
    return known[-1][names[-1]] if known else None


def _name_of(element: Any) -> str | None:
    if element.ColumnName is not None:
        return str(element.ColumnName.Value).lower()
    if is_a(element.Expression, DOM.ColumnReferenceExpression):
        return str(list(element.Expression.MultiPartIdentifier.Identifiers)[-1].Value).lower()
    return None


def _compared(fragment: Any) -> Iterator[list[Any]]:
    """Yield the operands that a predicate compares."""
    match kind(fragment):
        case "BooleanComparisonExpression" | "LikePredicate":
            yield [fragment.FirstExpression, fragment.SecondExpression]
        case "BooleanTernaryExpression":
            yield [fragment.FirstExpression, fragment.SecondExpression, fragment.ThirdExpression]
        case "InPredicate":
            others = list(fragment.Values)
            if fragment.Subquery is not None:
                others = [fragment.Subquery]
            yield [fragment.Expression, *others]
        case "SimpleCaseExpression":
            clauses = fragment.WhenClauses
            yield [fragment.InputExpression, *(clause.WhenExpression for clause in clauses)]
        case "NullIfExpression":
            yield [fragment.FirstExpression, fragment.SecondExpression]


def _operands(expression: Any) -> list[Any]:
    """Return the operands that determine an expression's collation."""
    operands = _OPERANDS.get(kind(expression))
    found = operands(expression) if operands else []
    return [operand for operand in found if operand is not None]


def _of_case(expression: Any) -> list[Any]:
    results = [clause.ThenExpression for clause in expression.WhenClauses]
    return [*results, expression.ElseExpression]


def _of_cast(expression: Any) -> list[Any]:
    return [expression.Parameter] if is_text(expression.DataType) else []


def _of_function(expression: Any) -> list[Any]:
    name = expression.FunctionName.Value.lower()
    if name not in _PASSING or expression.CallTarget is not None:
        return []
    return list(expression.Parameters)[_PASSING[name] or slice(None)]


def _of_sum(expression: Any) -> list[Any]:
    is_sum = str(expression.BinaryExpressionType) == "Add"
    return [expression.FirstExpression, expression.SecondExpression] if is_sum else []


_OPERANDS: dict[str, Callable[[Any], list[Any]]] = {
    "BinaryExpression": _of_sum,
    "CastCall": _of_cast,
    "CoalesceExpression": lambda expression: list(expression.Expressions),
    "ConvertCall": _of_cast,
    "FunctionCall": _of_function,
    "IIfCall": lambda expression: [expression.ThenExpression, expression.ElseExpression],
    "LeftFunctionCall": lambda expression: list(expression.Parameters)[:1],
    "NullIfExpression": lambda expression: [expression.FirstExpression],
    "ParenthesisExpression": lambda expression: [expression.Expression],
    "RightFunctionCall": lambda expression: list(expression.Parameters)[:1],
    "SearchedCaseExpression": _of_case,
    "SimpleCaseExpression": _of_case,
    "TryCastCall": _of_cast,
    "TryConvertCall": _of_cast,
}
