"""Definitions in scripts: tables, columns, routines and parameters."""

from typing import Any, NamedTuple

from tests.static.tsql.dotnet import DOM, is_a, kind

DATABASE = "database_default"
"""The collation of a text without one."""

_TEXT_TYPES = frozenset({"char", "nchar", "ntext", "nvarchar", "sysname", "text", "varchar"})


class Column(NamedTuple):
    """A column: whether an insert must or may name it, and the collation of a text."""

    is_needed: bool
    is_writable: bool
    collation: str | None = None


class Parameter(NamedTuple):
    """A parameter; its name is in lower case with the @."""

    name: str
    has_default: bool
    is_output: bool


Table = dict[str, Column]


class Catalog:
    """Definitions by name in lower case, such as rowq.queue.

    types: table types. first_columns: the first column of each key and index of a table.
    clustered: the columns of its clustered key. ambiguous: tables with two indexes that begin with
    the same column. constrained: tables with a check or a foreign key.
    """

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.types: dict[str, Table] = {}
        self.routines: dict[str, list[Parameter]] = {}
        self.first_columns: dict[str, set[str]] = {}
        self.clustered: dict[str, list[str]] = {}
        self.ambiguous: set[str] = set()
        self.constrained: set[str] = set()

    def add(self, fragments: list[Any]) -> None:
        """Add the definitions in a statement."""
        for fragment in fragments:
            if is_a(fragment, DOM.CreateTableStatement) and fragment.Definition is not None:
                self._add_table(object_name(fragment.SchemaObjectName), fragment.Definition)
            elif is_a(fragment, DOM.CreateIndexStatement):
                self._add_key(object_name(fragment.OnName), fragment.Columns)
            elif is_a(fragment, DOM.CreateTypeTableStatement):
                self.types[object_name(fragment.Name)] = table_of(fragment.Definition)
            elif is_a(fragment, DOM.ProcedureStatementBody):
                name = object_name(fragment.ProcedureReference.Name)
                self.routines[name] = [_parameter(parameter) for parameter in fragment.Parameters]
            elif is_a(fragment, DOM.FunctionStatementBody):
                self.routines[object_name(fragment.Name)] = [
                    _parameter(parameter) for parameter in fragment.Parameters
                ]

    def _add_table(self, name: str, definition: Any) -> None:
        self.tables[name] = table_of(definition)
        for column in definition.ColumnDefinitions:
            for constraint in column.Constraints:
                self._add_constraint(name, constraint, column.ColumnIdentifier.Value.lower())
        for constraint in [*definition.TableConstraints, *definition.Indexes]:
            self._add_constraint(name, constraint)

    def _add_constraint(self, name: str, constraint: Any, column: str | None = None) -> None:
        """Add a constraint or an index of a table or column."""
        if is_a(constraint, (DOM.CheckConstraintDefinition, DOM.ForeignKeyConstraintDefinition)):
            self.constrained.add(name)
            return
        if not is_a(constraint, (DOM.UniqueConstraintDefinition, DOM.IndexDefinition)):
            return
        columns = [object_name(each.Column.MultiPartIdentifier) for each in constraint.Columns]
        if columns:
            self._add_key(name, constraint.Columns)
        elif column is not None:
            columns = [column]
            self.first_columns.setdefault(name, set()).add(column)
        if is_a(constraint, DOM.UniqueConstraintDefinition):
            self._add_clustered(name, constraint, columns)

    def _add_clustered(self, table: str, constraint: Any, columns: list[str]) -> None:
        """Add the clustered key: a primary key is clustered by default."""
        says = constraint.Clustered
        if constraint.IsPrimaryKey if says is None else says:
            self.clustered[table] = columns

    def _add_key(self, table: str, columns: Any) -> None:
        if columns.Count:
            first = object_name(columns[0].Column.MultiPartIdentifier)
            others = self.first_columns.setdefault(table, set())
            if first in others:
                self.ambiguous.add(table)
            others.add(first)


def object_name(name: Any) -> str:
    """Return a name with its schema, in lower case."""
    return ".".join(identifier.Value.lower() for identifier in name.Identifiers)


def table_of(definition: Any) -> Table:
    """Return the columns of a table or of a table variable."""
    keys = {
        key_column.Column.MultiPartIdentifier.Identifiers[0].Value.lower()
        for constraint in definition.TableConstraints
        if is_a(constraint, DOM.UniqueConstraintDefinition) and constraint.IsPrimaryKey
        for key_column in constraint.Columns
    }
    columns = (
        (column.ColumnIdentifier.Value.lower(), column) for column in definition.ColumnDefinitions
    )
    return {name: _column(column, is_key=name in keys) for name, column in columns}


def _column(definition: Any, *, is_key: bool) -> Column:
    if definition.ComputedColumnExpression is not None or definition.IdentityOptions is not None:
        return Column(is_needed=False, is_writable=False)
    nulls = [
        constraint.Nullable
        for constraint in definition.Constraints
        if kind(constraint) == "NullableConstraintDefinition"
    ]
    is_nullable = nulls[0] if nulls else not is_key
    is_needed = definition.DefaultConstraint is None and not is_nullable
    return Column(is_needed, is_writable=True, collation=collation_of(definition))


def collation_of(definition: Any) -> str | None:
    """Return the collation of a text column, None for other types."""
    if not is_text(definition.DataType):
        return None
    return DATABASE if definition.Collation is None else str(definition.Collation.Value)


def is_text(data_type: Any) -> bool:
    """Return whether a type is text."""
    return data_type is not None and object_name(data_type.Name).lower() in _TEXT_TYPES


def _parameter(parameter: Any) -> Parameter:
    is_output = parameter.Modifier == DOM.ParameterModifier.Output
    return Parameter(parameter.VariableName.Value.lower(), parameter.Value is not None, is_output)
