"""Load Microsoft's libraries into this process; only the checker imports this."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from tests.static.tsql import tools

import_module("pythonnet").set_runtime(
    import_module("clr_loader").get_coreclr(
        runtime_config=str(tools.CONFIG), dotnet_root=str(tools.DOTNET)
    )
)
_clr = import_module("clr")
for _name in (
    "Microsoft.SqlServer.TransactSql.ScriptDom",
    "Microsoft.SqlServer.Dac",
    "Microsoft.SqlServer.Dac.Extensions",
    "Microsoft.Data.Tools.Schema.Sql",
    "Microsoft.Data.Tools.Utilities",
):
    _clr.AddReference(str(tools.LIBRARIES / _name))

DOM = import_module("Microsoft.SqlServer.TransactSql.ScriptDom")
MODEL = import_module("Microsoft.SqlServer.Dac.Model")
_System = import_module("System")
_Binding = import_module("System.Reflection").BindingFlags
ANY_MEMBER = _Binding.Public | _Binding.NonPublic | _Binding.Instance
_StringReader = import_module("System.IO").StringReader
_answers: dict[tuple[type, type | tuple[type, ...]], bool] = {}
_reflected: dict[str, list[Any]] = {}


def new_array(values: list[Any], *, of_text: bool = True) -> Any:
    """Return a .NET array of strings or of anything."""
    return _System.Array[_System.String if of_text else _System.Object](values)


def parse(text: str, level: int = 150) -> tuple[Any, list[Any]]:
    """Return a script's tree and its syntax errors; level 140 is SQL Server 2017, 150 is 2019."""
    parser = getattr(DOM, f"TSql{level}Parser")(True)
    tree, errors = parser.Parse(_StringReader(text), None)
    return tree, list(errors)


def is_a(fragment: Any, class_of: type | tuple[type, ...]) -> bool:
    """Return isinstance of a .NET object, cached by class."""
    key = type(fragment), class_of
    if key not in _answers:
        _answers[key] = isinstance(fragment, class_of)
    return _answers[key]


def kind(fragment: Any) -> str:
    """Return the name of a fragment's class, such as FunctionCall."""
    return str(fragment.GetType().Name)


def children(fragment: Any) -> Iterator[Any]:
    """Yield the fragments directly below one, in the order of the class's properties."""
    for reader in _readers(fragment):
        value = reader.GetValue(fragment)
        if value is None:
            continue
        if is_a(value, DOM.TSqlFragment):
            yield value
        else:
            yield from value


def walk(fragment: Any) -> list[Any]:
    """Return a fragment and all below it."""
    found = [fragment]
    for child in children(fragment):
        found += walk(child)
    return found


def _readers(fragment: Any) -> list[Any]:
    name = kind(fragment)
    if name not in _reflected:
        _reflected[name] = [
            property_info
            for property_info in fragment.GetType().GetProperties()
            if _holds_fragments(property_info.PropertyType)
            and not property_info.GetIndexParameters().Length
        ]
    return _reflected[name]


def _holds_fragments(kind_of_property: Any) -> bool:
    if kind_of_property.IsGenericType:
        kind_of_property = kind_of_property.GetGenericArguments()[0]
    while kind_of_property is not None:
        if kind_of_property.Name == "TSqlFragment":
            return True
        kind_of_property = kind_of_property.BaseType
    return False
