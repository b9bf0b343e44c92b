"""The options of a message and the settings of a queue, as types of Python."""

import textwrap
from collections.abc import Iterator

from rowq.contract import Parameter, load_contract

_TYPES = {
    "boolean": "bool",
    "float": "float",
    "int32": "int",
    "int64s": "Sequence[int]",
    "json": "Mapping[str, Any]",
    "text": "str",
    "timestamp": "datetime",
}
_COLUMNS = {
    "binary": "bytes",
    "float": "float",
    "int32": "int",
    "int64": "int",
    "json": "dict[str, Any]",
    "text": "str",
    "timestamp": "datetime",
}
_NEVER_NULL = {"message_id", "state", "priority", "attempt", "max_attempts", "enqueued_at"}
_IN_JAVASCRIPT = (
    "complete",
    "complete_and_dequeue",
    "dequeue_fast",
    "enqueue",
    "extend_lease",
    "maintain",
    "release",
    "retry_later",
)
_BODIES = {"body", "body_binary"}
"""Parameters that are `data` or `text` in Python."""
_LONGEST_LINE = 101
_BOOLEANS = {"true": "True", "false": "False"}
_WITH_DEFAULTS = {
    "MessageOptions": "enqueue",
    "PublishOptions": "publish",
    "ScheduleSettings": "create_schedule",
}
"""Classes of options, and the routine with their defaults."""
_WIDTH = 92


def classes() -> str:
    """Return the defaults that are not None, and a TypedDict for each kind of options."""
    return "\n\n".join(
        [
            _defaults(),
            _class("QueueSettings", _optional("create_queue"), "Settings of a queue."),
            _class("MessageOptions", _optional("enqueue"), "Options of a message."),
            _class("PublishOptions", _optional("publish"), "Options of a published message."),
            _class(
                "MessageChanges",
                _optional("alter_message"),
                "Changes of a message; None leaves a value unchanged.",
            ),
            _class("ScheduleSettings", _optional("create_schedule"), "Settings of a schedule."),
            _class(
                "ScheduleChanges",
                _optional("alter_schedule"),
                "Settings of an existing schedule; None leaves a setting unchanged.",
            ),
            "",
        ]
    )


def _defaults() -> str:
    """Return the defaults other than None, by class."""
    lines = []
    for name, routine in _WITH_DEFAULTS.items():
        spelled = list(_spelled(_optional(routine)))
        line = f"    {name!r}: {{{', '.join(spelled)}}},\n"
        if len(line) > _LONGEST_LINE:
            parts = "".join(f"        {one},\n" for one in spelled)
            line = f"    {name!r}: {{\n{parts}    }},\n"
        lines.append(line)
    return (
        f"DEFAULTS: Mapping[str, Mapping[str, Any]] = {{\n{''.join(lines)}}}\n"
        '"""Defaults other than None, by class."""\n'
    ).replace("'", '"')


def _spelled(options: list[Parameter]) -> Iterator[str]:
    for one in options:
        if one.default not in {None, "null"}:
            yield f"'{one.name}': {_BOOLEANS.get(str(one.default), one.default)}"


def fields() -> str:
    """Return the options of a message as fields of NewMessage."""
    defaults = {"null": "None"}
    return "".join(
        f"{one.name}: {_type(one)} = {defaults.get(str(one.default), one.default)}\n"
        for one in _optional("enqueue")
    )


def details() -> str:
    """Return the columns of get_message as fields of MessageDetails."""
    return "".join(
        f"{one.name}: {_COLUMNS[one.type]}{'' if one.name in _NEVER_NULL else ' | None'}\n"
        for one in load_contract().routine("get_message").columns
    )


def parameters_in_javascript() -> str:
    """Return the MySQL parameters of routines for the JavaScript example."""
    entries = []
    for name in _IN_JAVASCRIPT:
        entry = load_contract().routine(name).on("mysql")
        names = " ".join(one.name for one in entry.parameters)
        entries.append(f'{name}: "{names}",\n')
        if len(entries[-1]) > _WIDTH:
            lines = [f'    "{line} "' for line in textwrap.wrap(names, _WIDTH - 3)]
            entries[-1] = f"{name}:\n" + " +\n".join(lines)[:-2] + '",\n'
    return "".join(entries)


def _optional(routine: str) -> list[Parameter]:
    """Return the optional parameters of a routine, except bodies."""
    every = load_contract().routine(routine).parameters
    return [one for one in every if one.default is not None and one.name not in _BODIES]


def _type(one: Parameter) -> str:
    return _TYPES[one.type] + (" | None" if one.default == "null" else "")


def _class(name: str, options: list[Parameter], doc: str) -> str:
    head = f'class {name}(TypedDict, total=False):\n    """{doc}"""\n'
    return head + "".join(_attributes(options))


def _attributes(options: list[Parameter]) -> Iterator[str]:
    for one in options:
        yield f"\n    {one.name}: {_type(one)}\n"
        yield _described(one.meaning)


def _described(meaning: str) -> str:
    """Return a meaning as an attribute's docstring."""
    lines = textwrap.wrap(f'"""{meaning}"""', _WIDTH)
    if len(lines) > 1:
        lines = [*textwrap.wrap(f'"""{meaning}', _WIDTH), '"""']
    return textwrap.indent("\n".join(lines) + "\n", "    ")
