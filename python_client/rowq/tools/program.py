"""Entry point of `rowq`, which reports missing packages."""

import sys

from rowq.tools.console.exit_codes import ExitCode

_TOOLS = {"rich", "typer", "yoyo"}


def main() -> None:
    """Run the program; raise SystemExit with its exit status."""
    try:
        from rowq.tools.command.main import main as run
    except ModuleNotFoundError as error:
        if error.name not in _TOOLS:
            raise
        print(f"rowq: {error.name} is missing; run pip install 'rowq[tools]'", file=sys.stderr)
        sys.exit(ExitCode.NOT_INSTALLED)
    run()
