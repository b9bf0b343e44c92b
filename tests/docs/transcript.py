"""Runs the examples of a Markdown page and compares what they print with what the page says.

A ```console block is a list of commands after "$ ", each with its output; "..." in the output
stands for anything. A ```python block is a program, the ```text block after it is its output; one
that begins with a line such as "# test_orders.py" is a file of that name for what comes after it.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"^```(console|python)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL
)


_FILE = re.compile(r"# (\w+\.py)\n")
_WRITE = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.argv[2], encoding='utf-8')"


@dataclass(frozen=True, slots=True)
class Example:
    """A command line and the output that the page promises."""

    command: tuple[str, ...]
    shown: str
    output: str


def examples(page: Path) -> Iterator[Example]:
    """Yield the examples of a page in their order."""
    for kind, body, output in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python" and (file := _FILE.match(body)):
            yield Example((sys.executable, "-c", _WRITE, file[1], body), body, output)
            continue
        if kind == "python":
            yield Example((sys.executable, "-c", body), body, output)
            continue
        for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", body, re.MULTILINE):
            yield Example(("bash", "-c", command), command, printed)


def printed_by(example: Example, environment: Mapping[str, str], directory: Path) -> str:
    """Run an example and return what it printed; a failure shows its standard error."""
    done = subprocess.run(
        example.command,
        env=dict(environment),
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{example.shown}\n{done.stdout}{done.stderr}"
    return done.stdout


def agrees(shown: str, printed: str) -> bool:
    """Tell whether the output is the one shown, white space at line ends and "..." aside."""
    pattern = ".*".join(re.escape(part) for part in _trimmed(shown).split("..."))
    return re.fullmatch(pattern, _trimmed(printed), re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())
