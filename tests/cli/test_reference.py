"""The table of commands in the client's README is what the program says of itself."""

from pathlib import Path
from typing import Any

from typer.main import get_command

from rowq.tools.command.main import app
from rowq.tools.console.exit_codes import MEANINGS

README = Path(__file__).parents[2] / "python_client" / "README.md"


def commands(group: Any, prefix: str = "rowq") -> list[tuple[str, str]]:
    """Return every command with the first paragraph of its help."""
    found: list[tuple[str, str]] = []
    for name, command in group.commands.items():
        path = f"{prefix} {name}"
        if hasattr(command, "commands"):
            found += commands(command, path)
        else:
            first = " ".join(command.help.split("\n\n")[0].split()).rstrip(".")
            found.append((" ".join([path, *arguments(command)]), first))
    return found


def arguments(command: Any) -> list[str]:
    """Return how a command's arguments are written."""
    positional = [
        parameter for parameter in command.params if parameter.param_type_name == "argument"
    ]
    written = [
        parameter.metavar if parameter.required else f"[{parameter.metavar}]"
        for parameter in positional
    ]
    return [
        f"{text}..." if parameter.nargs == -1 else text
        for parameter, text in zip(positional, written, strict=True)
    ]


def test_the_readme_has_every_command_with_its_arguments_and_its_help() -> None:
    rows = "".join(f"| `{usage}` | {text} |\n" for usage, text in commands(get_command(app)))
    assert rows in README.read_text(), f"the table in {README.name} should be:\n{rows}"


def test_the_readme_has_every_exit_status() -> None:
    rows = "".join(f"| {code} | {meaning} |\n" for code, meaning in MEANINGS.items())
    assert rows in README.read_text(), f"the table in {README.name} should be:\n{rows}"


def test_every_command_that_prints_a_result_can_print_json() -> None:
    without = {"sql", "metrics", "top", "web"}  # They are for other programs, or for eyes alone.
    for usage, _ in commands(get_command(app)):
        command: Any = get_command(app)
        for word in usage.split()[1:]:
            if hasattr(command, "commands"):
                command = command.commands[word]
        options = {option for parameter in command.params for option in parameter.opts}
        assert ("--json" in options) is (command.name not in without), usage
