"""The options of a message and the settings of a queue, as types of Python."""

import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rowq.contract import first_sentence
from rowq.resources import sql_directory

_TYPES = {
    "float": "float",
    "int32": "int",
    "int64s": "Sequence[int]",
    "json": "Mapping[str, Any]",
    "text": "str",
    "timestamp": "datetime",
}
_BODIES = {"body", "body_binary"}
"""What Python takes as `data` or `text`."""
_WIDTH = 92


def classes() -> str:
    """Return the defaults that are not None, and a TypedDict for each kind of options."""
    contract = _contract()
    enqueue = list(_optional("enqueue", contract))
    defaults = {one["name"]: one["default"] for one in enqueue if one["default"] != "null"}
    listed = ", ".join(f'"{name}": {default}' for name, default in defaults.items())
    return "\n\n".join(
        [
            f"DEFAULTS: Mapping[str, Any] = {{{listed}}}\n"
            '"""What an option is that is left out, if that is not None."""\n',
            _class("QueueSettings", "create_queue", "Settings of a queue.", contract),
            _class("MessageOptions", "enqueue", "Options of a message.", contract),
            _class("PublishOptions", "publish", "Options of a published message.", contract),
            "",
        ]
    )


def fields() -> str:
    """Return the options of a message as fields of NewMessage."""
    lines = []
    for one in _optional("enqueue", _contract()):
        default = "None" if one["default"] == "null" else one["default"]
        lines.append(f"{one['name']}: {_type(one)} = {default}\n")
    return "".join(lines)


def _contract() -> dict[str, Any]:
    with (sql_directory() / "contract.toml").open("rb") as file:
        return tomllib.load(file)


def _optional(routine: str, contract: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the parameters of a routine that may be left out, bodies not among them."""
    for one in contract["routine"][routine]["parameters"]:
        if "default" in one and one["name"] not in _BODIES:
            yield {**contract["parameters"][one["name"]], **one}


def _type(one: Mapping[str, Any]) -> str:
    return _TYPES[one["type"]] + (" | None" if one["default"] == "null" else "")


def _class(name: str, routine: str, doc: str, contract: Mapping[str, Any]) -> str:
    head = f'class {name}(TypedDict, total=False):\n    """{doc}"""\n'
    return head + "".join(_attributes(_optional(routine, contract)))


def _attributes(options: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for one in options:
        yield f"\n    {one['name']}: {_type(one)}\n"
        yield _described(one["meaning"])


def _described(meaning: str) -> str:
    """Return the first sentence of a meaning as the docstring of an attribute."""
    text = first_sentence(meaning)
    lines = textwrap.wrap(f'"""{text}"""', _WIDTH)
    if len(lines) > 1:
        lines = [*textwrap.wrap(f'"""{text}', _WIDTH), '"""']
    return textwrap.indent("\n".join(lines) + "\n", "    ")
