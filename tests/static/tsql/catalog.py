"""What the scripts define: tables and their columns, procedures and functions and parameters."""

from typing import Any, NamedTuple

from tests.static.tsql.dotnet import DOM, kind


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
    """Definitions by name in lower case, such as rowq.queue; types are those of tables."""

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.types: dict[str, Table] = {}
        self.routines: dict[str, list[Parameter]] = {}

    def add(self, fragments: list[Any]) -> None:
        """Note the definitions in a statement."""
        for one in fragments:
            if isinstance(one, DOM.CreateTableStatement) and one.Definition is not None:
                self.tables[object_name(one.SchemaObjectName)] = table_of(one.Definition)
            elif isinstance(one, DOM.CreateTypeTableStatement):
                self.types[object_name(one.Name)] = table_of(one.Definition)
            elif isinstance(one, DOM.ProcedureStatementBody):
                name = object_name(one.ProcedureReference.Name)
                self.routines[name] = [_parameter(each) for each in one.Parameters]
            elif isinstance(one, DOM.FunctionStatementBody):
                self.routines[object_name(one.Name)] = [_parameter(each) for each in one.Parameters]


def object_name(name: Any) -> str:
    """Return a name with its schema, in lower case."""
    return ".".join(one.Value.lower() for one in name.Identifiers)


def table_of(definition: Any) -> Table:
    """Return the columns of a table or of a table variable."""
    keys = {
        each.Column.MultiPartIdentifier.Identifiers[0].Value.lower()
        for constraint in definition.TableConstraints
        if isinstance(constraint, DOM.UniqueConstraintDefinition) and constraint.IsPrimaryKey
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
