"""The program `rowq`, or the line that says how to get what it is made of."""

import sys

_TOOLS = {"rich", "typer", "yoyo"}
_FAILED = 6


def main() -> None:
    """Run the program; raises SystemExit with its exit status."""
    try:
        from rowq.cli.main import main as run
    except ModuleNotFoundError as error:
        if error.name not in _TOOLS:
            raise
        print(f"rowq: the program needs {error.name}: pip install 'rowq[tools]'", file=sys.stderr)
        sys.exit(_FAILED)
    run()
