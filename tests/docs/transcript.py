"""Runs the examples of a Markdown page and compares what they print with what the page says.

A ```console block is a list of commands after "$ ", each with its output; "..." in the output
stands for anything. A ```python block is a program, the ```text block after it is its output. A
block of any language that begins with a line such as "# test_orders.py" or "// First.java" is a
file of that name for what comes after it.

A page may be run in part: a heading with all that is below it, and in that one tab of a set.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"^```(console|python|js|java|go|php|sql)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"(?:<\?php )?(?:#|//|--) (\w+\.(?:py|mjs|java|go|php|sql))\n")
_FENCED = re.compile(r"^```.*?^```\n", re.MULTILINE | re.DOTALL)
_TAB = re.compile(r"^:::\{tab-item\} ([^\n]+)\n(.*?)^:::\n", re.MULTILINE | re.DOTALL)
_WRITE = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.argv[2], encoding='utf-8')"


@dataclass(frozen=True, slots=True)
class Example:
    """A command line and the output that the page promises."""

    command: tuple[str, ...]
    shown: str
    output: str


def examples(text: str) -> Iterator[Example]:
    """Yield the examples of a page, or of a part of one, in their order."""
    for kind, body, output in _BLOCK.findall(text):
        if file := _FILE.match(body):
            yield Example((sys.executable, "-c", _WRITE, file[1], body), body, output)
        elif kind == "python":
            yield Example((sys.executable, "-c", body), body, output)
        elif kind == "console":
            for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", body, re.MULTILINE):
                yield Example(("bash", "-c", command), command, printed)


def section(text: str, heading: str) -> str:
    """Return what stands below a heading of a page, such as "## Install", up to the next one."""
    # What begins with "#" in a block is a comment.
    bare = _FENCED.sub(lambda block: " " * len(block[0]), text)
    level = len(heading.split()[0])
    found = re.search(
        rf"^{re.escape(heading)}\n.*?(?=^#{{1,{level}}} |\Z)", bare, re.MULTILINE | re.DOTALL
    )
    assert found, f"there is no heading {heading!r}"
    return text[slice(*found.span())]


def tab(text: str, title: str) -> str:
    """Return a part of a page without what is in other tabs than those of this title."""
    assert any(found[1] == title for found in _TAB.finditer(text)), f"there is no tab {title}"
    return _TAB.sub(lambda found: found[2] if found[1] == title else "", text)


def printed_by(example: Example, environment: Mapping[str, str], directory: Path) -> str:
    """Run an example and return what it printed; a failure shows its standard error."""
    done = subprocess.run(
        example.command,
        env=dict(environment),
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=120,
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
