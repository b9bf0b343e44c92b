"""The command `rowq`: each command with its arguments and options, read from the program."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from rowq.tools.command.main import app
from rowq.tools.console.exit_codes import MEANINGS
from sql.generate.contract import table

_HEAD = """\
# Commands

For operators and developers.
Every command of `rowq` with all its arguments and options, as `rowq COMMAND --help` prints them.

A word in capitals is a value. Every command has `--help`, or `-h`.
[The command `rowq`](../command.md) describes connection, output and exit statuses.
"""


def page() -> str:
    """Return the page of the site as Markdown."""
    sections = (_section(command, path) for path, command in _commands(get_command(app), "rowq"))
    return "\n".join([_HEAD, *sections])


def usages() -> list[tuple[str, str]]:
    """Return each command with its arguments, and the first sentence of its help."""
    return [
        (_usage(command, path), " ".join(command.help.split("\n\n")[0].split()).rstrip("."))
        for path, command in _commands(get_command(app), "rowq")
    ]


PARTS = {
    "commands": lambda: table(
        ("Command", "Purpose"), *((f"`{usage}`", text) for usage, text in usages())
    ),
    "exit statuses": lambda: table(
        ("Exit status", "Meaning"), *((str(int(c)), m) for c, m in MEANINGS.items())
    ),
}
"""The generated parts of docs/command.md."""


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _arguments(command: Any) -> list[Any]:
    return [one for one in command.params if one.param_type_name == "argument"]


def _usage(command: Any, path: str) -> str:
    return " ".join([path, *map(_argument, _arguments(command))])


def _section(command: Any, path: str) -> str:
    options = [one for one in command.params if one.param_type_name == "option"]
    usage = _usage(command, path) + (" [OPTIONS]" if options else "")
    parts = [f"## {path}", f"```text\n{usage}\n```", _escaped(command.help)]
    if arguments := _arguments(command):
        rows = [(f"`{one.metavar}`", _escaped(one.help or "")) for one in arguments]
        parts.append(table(("Argument", "Meaning"), *rows))
    if options:
        rows = [(_option(one), _meaning(one)) for one in options]
        parts.append(table(("Option", "Meaning"), *rows))
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _argument(one: Any) -> str:
    text = str(one.metavar) if one.required else f"[{one.metavar}]"
    return f"{text}..." if one.nargs == -1 else text


def _option(one: Any) -> str:
    names = ", ".join([*sorted(one.opts, key=len), *one.secondary_opts])
    last_word = one.opts[0].rpartition("-")[2]
    value = "" if one.is_flag else f" {one.metavar or last_word.upper()}"
    return f"`{names}{value}`"


def _meaning(one: Any) -> str:
    known = one.default is not None and not callable(one.default) and not one.is_flag
    default = f" Default: {one.default}." if known and one.show_default else ""
    needed = " Required." if one.required else ""
    return _escaped(f"{one.help}{needed}{default}")


def _escaped(text: str) -> str:
    """Return a help text as Markdown, in which `<` begins no HTML and `*` no emphasis."""
    return text.replace("<", "&lt;").replace("*", "\\*")
