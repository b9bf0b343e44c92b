"""Every command that prints a result can print it as JSON."""

from typing import Any

from typer.main import get_command

from docs.commands import usages
from rowq.tools.command.main import app


def test_commands_with_results_have_json_option() -> None:
    without = {"sql", "metrics", "top", "web"}  # These have another format.
    for usage, _ in usages():
        command: Any = get_command(app)
        for word in usage.split()[1:]:
            if hasattr(command, "commands"):
                command = command.commands[word]
        options = {option for parameter in command.params for option in parameter.opts}
        assert ("--json" in options) is (command.name not in without), usage
