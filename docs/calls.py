"""Calls of a routine on each engine and in each language, as Markdown.

Arguments are named on PostgreSQL, SQL Server and Oracle, and positional on MariaDB and MySQL.
"""

import inspect
from collections.abc import Callable, Iterator

import rowq
from rowq.contract import Parameter, Routine, load_contract
from rowq.engines.sqlserver.calls import procedure_name

ENGINES = {
    "postgres": "PostgreSQL",
    "mysql": "MariaDB, MySQL",
    "sqlserver": "SQL Server",
    "oracle": "Oracle",
}

Mark = Callable[[int, str], str]
"""Placeholder of a value, from its position (from 1) and the parameter's name."""


def by_engine(routine: Routine) -> Iterator[tuple[str, str]]:
    """Yield each engine's title and a call with all parameters."""
    for engine, title in ENGINES.items():
        if (there := load_contract().of(engine).get(routine.name)) is not None:
            yield title, f"```sql\n{_CALLS[engine](there)}\n```"


def on_postgres(routine: Routine, mark: Mark = lambda _place, name: f":{name}") -> str:
    """Return a call on PostgreSQL with all parameters."""
    return _postgres(routine, _inputs(routine), mark, "\n    ", "\n")


def needed_on_postgres(routine: Routine, mark: Mark) -> str:
    """Return a call on PostgreSQL with the required parameters, in one line."""
    return _postgres(routine, _needed(routine), mark)


def on_mysql(routine: Routine, mark: Mark = lambda _place, name: f":{name}") -> str:
    """Return a call on MariaDB and MySQL with all parameters, by position."""
    marks = [mark(place, one.name) for place, one in enumerate(_inputs(routine), start=1)]
    return f"call rowq.{routine.name}({_listed(marks)})"


def by_language(routine: Routine) -> Iterator[tuple[str, str]]:
    """Yield each language and a call with the required parameters."""
    if method := getattr(rowq.Queue, routine.name, None):
        yield "Python", f"```python\nqueue.{routine.name}{_signature(method)}\n```"
    there = load_contract().of("postgres").get(routine.name)
    if there is None:
        return
    for language, write in _LANGUAGES.items():
        yield language, write(there, _needed(there))


def _inputs(routine: Routine) -> list[Parameter]:
    return [one for one in routine.parameters if one.direction == "in"]


def _needed(routine: Routine) -> list[Parameter]:
    """Return the parameters without a default, and the body."""
    return [one for one in _inputs(routine) if one.default is None or one.name == "body"]


def _listed(items: list[str]) -> str:
    inner = "".join(f"\n    {item}," for item in items).removesuffix(",")
    return f"{inner}\n" if items else ""


def _signature(method: Callable[..., object]) -> str:
    signature = inspect.signature(method)
    shown = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in signature.parameters.items()
        if name != "self"
    ]
    return str(inspect.Signature(shown))


def _postgres(
    routine: Routine, parameters: list[Parameter], mark: Mark, before: str = " ", after: str = ""
) -> str:
    # The cast selects the overload.
    several = {overload.parameter for overload in routine.overloads_on("postgres")}
    named = [
        f"p_{one.name} => {mark(place, one.name)}{'::text' if one.name in several else ''}"
        for place, one in enumerate(parameters, start=1)
    ]
    inner = f",{before}".join(named)
    if named and before != " ":
        inner = f"{before}{inner}{after}"
    if routine.kind == "procedure":
        return f"call rowq.{routine.name}({inner})"
    return f"select * from rowq.{routine.name}({inner})"  # noqa: S608 - from the contract


def _sqlserver(routine: Routine) -> str:
    named = _listed([f"@{one.name} = :{one.name}" for one in _inputs(routine)]).rstrip()
    return f"exec rowq.{procedure_name(routine.name)}{named}"


def _oracle(routine: Routine) -> str:
    named = [f"p_{one.name} => :{one.name}" for one in _inputs(routine)]
    return f"rowq.{routine.name}({_listed([*named, 'p_rows => :rows'])})"


_CALLS: dict[str, Callable[[Routine], str]] = {
    "postgres": on_postgres,
    "mysql": on_mysql,
    "sqlserver": _sqlserver,
    "oracle": _oracle,
}


def _numbered(place: int, _name: str) -> str:
    return f"${place}"


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _node(routine: Routine, needed: list[Parameter]) -> str:
    call = _postgres(routine, needed, _numbered)
    values = ", ".join(_camel(one.name) for one in needed)
    return f'```js\nawait client.query(\n    "{call}",\n    [{values}],\n);\n```'


def _java(routine: Routine, needed: list[Parameter]) -> str:
    call = _postgres(routine, needed, lambda _place, _name: "?")
    lines = [f'PreparedStatement call = connection.prepareStatement(\n    "{call}");']
    lines += [_set(place, one) for place, one in enumerate(needed, start=1)]
    # A procedure returns a row as well.
    lines.append("ResultSet rows = call.executeQuery();")
    return "```java\n" + "\n".join(lines) + "\n```"


def _set(place: int, parameter: Parameter) -> str:
    value = _camel(parameter.name)
    match parameter.type:
        case "int64s":
            return f'call.setArray({place}, connection.createArrayOf("bigint", {value}));'
        case "json":
            return f"call.setObject({place}, {value}, Types.OTHER);"
        case kind:
            return f"call.{_SETTERS.get(kind, 'setString')}({place}, {value});"


_SETTERS = {
    "boolean": "setBoolean",
    "int32": "setInt",
    "int64": "setLong",
    "float": "setDouble",
    "binary": "setBytes",
    "timestamp": "setObject",
}


def _go(routine: Routine, needed: list[Parameter]) -> str:
    call = _postgres(routine, needed, _numbered)
    values = "".join(f", {_camel(one.name)}" for one in needed)
    return f'```go\nrows, err := db.QueryContext(ctx,\n    "{call}"{values})\n```'


def _php(routine: Routine, needed: list[Parameter]) -> str:
    call = _postgres(routine, needed, lambda _place, name: f":{name}")
    values = ", ".join(f"'{one.name}' => ${_camel(one.name)}" for one in needed)
    return (
        f"```php\n$call = $database->prepare(\n    '{call}'\n);\n$call->execute([{values}]);\n```"
    )


def _csharp(routine: Routine, needed: list[Parameter]) -> str:
    call = _postgres(routine, needed, _numbered)
    lines = [f'var call = new NpgsqlCommand(\n    "{call}", connection);']
    lines += [f"call.Parameters.Add(new() {{ Value = {_camel(one.name)} }});" for one in needed]
    lines.append("var rows = call.ExecuteReader();")
    return "```csharp\n" + "\n".join(lines) + "\n```"


_LANGUAGES: dict[str, Callable[[Routine, list[Parameter]], str]] = {
    "Node.js": _node,
    "Java": _java,
    "Go": _go,
    "PHP": _php,
    "C#": _csharp,
}
