"""Find the columns of a procedure's sources: tables, variables, expressions and JSON."""

from collections.abc import Iterator
from typing import Any

from tests.static.tsql.catalog import Catalog, Table, object_name, table_of
from tests.static.tsql.dotnet import DOM, is_a, kind

Columns = frozenset[str]
"""Names in lower case."""

_NOT_KNOWN: Columns = frozenset({"*"})
_ROWS_OF_CHANGES = ("inserted", "deleted")


class Scope:
    """The sources of a body. An alias used for several sources has the columns of all.

    tables: the writable tables and table variables. by_alias: the columns of each alias. names: all
    columns and column aliases.
    """

    def __init__(self, catalog: Catalog, fragments: list[Any]) -> None:
        self.tables: dict[str, Table] = dict(catalog.tables)
        self._types = catalog.types
        self._body = fragments
        self._sources: dict[str, Columns] = {}
        self.by_alias: dict[str, Columns] = {}
        self._note_variables()
        self._note_expressions()
        for alias, columns in self._aliases():
            self.by_alias[alias] = self.by_alias.get(alias, frozenset()) | columns
        for name in _ROWS_OF_CHANGES:
            self.by_alias[name] = _NOT_KNOWN
        self.names = frozenset().union(*self.by_alias.values(), self._given_names())

    @property
    def is_whole(self) -> bool:
        """Whether the columns of all sources are known."""
        return all(
            "*" not in columns
            for alias, columns in self.by_alias.items()
            if alias not in _ROWS_OF_CHANGES
        )

    def _note_variables(self) -> None:
        for fragment in self._body:
            if is_a(fragment, DOM.DeclareTableVariableBody):
                self.tables[fragment.VariableName.Value.lower()] = table_of(fragment.Definition)
            elif is_a(fragment, DOM.DeclareVariableElement) and fragment.DataType.Name is not None:
                type_name = object_name(fragment.DataType.Name)
                if type_name in self._types:
                    self.tables[fragment.VariableName.Value.lower()] = self._types[type_name]

    def _note_expressions(self) -> None:
        for fragment in self._body:
            if is_a(fragment, DOM.CommonTableExpression):
                name = fragment.ExpressionName.Value.lower()
                columns = _columns_of(fragment.QueryExpression, fragment.Columns)
                self._sources[name] = self._sources.get(name, frozenset()) | columns

    def _aliases(self) -> Iterator[tuple[str, Columns]]:
        for fragment in self._body:
            if is_a(fragment, DOM.TableReferenceWithAlias):
                name, columns = self._source(fragment)
                yield (
                    (fragment.Alias.Value.lower() if fragment.Alias is not None else name),
                    columns,
                )

    def _source(self, reference: Any) -> tuple[str, Columns]:
        """Return a source's own name and its columns."""
        match kind(reference):
            case "NamedTableReference":
                name = object_name(reference.SchemaObject)
                return name.rpartition(".")[2], self._columns(name)
            case "VariableTableReference":
                name = reference.Variable.Name.lower()
                return name, self._columns(name)
            case "QueryDerivedTable":
                return "", _columns_of(reference.QueryExpression, reference.Columns)
            case "InlineDerivedTable":
                return "", frozenset(column.Value.lower() for column in reference.Columns)
            case "OpenJsonTableReference":
                return "openjson", _columns_of_json(reference)
        return "", _NOT_KNOWN

    def _columns(self, name: str) -> Columns:
        if name in self.tables:
            return frozenset(self.tables[name])
        return self._sources.get(name, _NOT_KNOWN)

    def _given_names(self) -> Iterator[str]:
        for fragment in self._body:
            if is_a(fragment, DOM.SelectScalarExpression) and fragment.ColumnName is not None:
                yield fragment.ColumnName.Value.lower()


def _columns_of(query: Any, listed: Any) -> Columns:
    """Return the names of a query's columns, as listed before it or as it gives them itself."""
    if listed.Count:
        return frozenset(identifier.Value.lower() for identifier in listed)
    return frozenset(_name_of(element) for element in first_query(query).SelectElements)


def first_query(query: Any) -> Any:
    """Return the first `select` of what may be several in a union, or in parentheses."""
    while not is_a(query, DOM.QuerySpecification):
        is_pair = is_a(query, DOM.BinaryQueryExpression)
        query = query.FirstQueryExpression if is_pair else query.QueryExpression
    return query


def _name_of(element: Any) -> str:
    if not is_a(element, DOM.SelectScalarExpression):
        return "*"
    if element.ColumnName is not None:
        return str(element.ColumnName.Value).lower()
    if kind(element.Expression) != "ColumnReferenceExpression":
        return "*"
    return str(list(element.Expression.MultiPartIdentifier.Identifiers)[-1].Value).lower()


def _columns_of_json(source: Any) -> Columns:
    items = source.SchemaDeclarationItems
    if not items.Count:
        return frozenset({"key", "value", "type"})
    return frozenset(item.ColumnDefinition.ColumnIdentifier.Value.lower() for item in items)
