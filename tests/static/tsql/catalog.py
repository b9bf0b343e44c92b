"""What the scripts define: tables and their columns, procedures and functions and parameters."""

from typing import Any, NamedTuple

from tests.static.tsql.dotnet import DOM, is_a, kind


class Column(NamedTuple):
    """A table's column: whether an insert must name it, and whether it may."""

    is_needed: bool
    is_writable: bool


class Parameter(NamedTuple):
    """A parameter, its name with the @ in lower case."""

    name: str
    has_default: bool
    is_output: bool


Table = dict[str, Column]


class Catalog:
    """Definitions by name in lower case, such as rowq.queue.

    types: those of tables. first_columns: what each key and index of a table begins with.
    constrained: tables with a check or a foreign key.
    """

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.types: dict[str, Table] = {}
        self.routines: dict[str, list[Parameter]] = {}
        self.first_columns: dict[str, set[str]] = {}
        self.constrained: set[str] = set()

    def add(self, fragments: list[Any]) -> None:
        """Note the definitions in a statement."""
        for one in fragments:
            if is_a(one, DOM.CreateTableStatement) and one.Definition is not None:
                self._add_table(object_name(one.SchemaObjectName), one.Definition)
            elif is_a(one, DOM.CreateIndexStatement):
                self._add_key(object_name(one.OnName), one.Columns)
            elif is_a(one, DOM.CreateTypeTableStatement):
                self.types[object_name(one.Name)] = table_of(one.Definition)
            elif is_a(one, DOM.ProcedureStatementBody):
                name = object_name(one.ProcedureReference.Name)
                self.routines[name] = [_parameter(each) for each in one.Parameters]
            elif is_a(one, DOM.FunctionStatementBody):
                self.routines[object_name(one.Name)] = [_parameter(each) for each in one.Parameters]

    def _add_table(self, name: str, definition: Any) -> None:
        self.tables[name] = table_of(definition)
        constraints = list(definition.TableConstraints)
        for column in definition.ColumnDefinitions:
            constraints += column.Constraints
            if any(is_a(one, DOM.UniqueConstraintDefinition) for one in column.Constraints):
                self.first_columns.setdefault(name, set()).add(
                    column.ColumnIdentifier.Value.lower()
                )
        for one in [*constraints, *definition.Indexes]:
            if is_a(one, (DOM.CheckConstraintDefinition, DOM.ForeignKeyConstraintDefinition)):
                self.constrained.add(name)
            elif is_a(one, (DOM.UniqueConstraintDefinition, DOM.IndexDefinition)):
                self._add_key(name, one.Columns)

    def _add_key(self, table: str, columns: Any) -> None:
        if columns.Count:
            first = object_name(columns[0].Column.MultiPartIdentifier)
            self.first_columns.setdefault(table, set()).add(first)


def object_name(name: Any) -> str:
    """Return a name with its schema, in lower case."""
    return ".".join(one.Value.lower() for one in name.Identifiers)


def table_of(definition: Any) -> Table:
    """Return the columns of a table or of a table variable."""
    keys = {
        each.Column.MultiPartIdentifier.Identifiers[0].Value.lower()
        for constraint in definition.TableConstraints
        if is_a(constraint, DOM.UniqueConstraintDefinition) and constraint.IsPrimaryKey
        for each in constraint.Columns
    }
    columns = ((one.ColumnIdentifier.Value.lower(), one) for one in definition.ColumnDefinitions)
    return {name: _column(one, is_key=name in keys) for name, one in columns}


def _column(definition: Any, *, is_key: bool) -> Column:
    if definition.ComputedColumnExpression is not None or definition.IdentityOptions is not None:
        return Column(is_needed=False, is_writable=False)
    nulls = [
        one.Nullable
        for one in definition.Constraints
        if kind(one) == "NullableConstraintDefinition"
    ]
    is_nullable = nulls[0] if nulls else not is_key
    return Column(definition.DefaultConstraint is None and not is_nullable, is_writable=True)


def _parameter(one: Any) -> Parameter:
    is_output = one.Modifier == DOM.ParameterModifier.Output
    return Parameter(one.VariableName.Value.lower(), one.Value is not None, is_output)
