"""Run the examples of a Markdown page and compare their output.

A ```console block is a list of commands after "$ ", each with its output; "..." in the output
matches any text. A ```python block is a program, the ```text block after it its output. A block
that begins with a line such as "# test_orders.py" or "// First.java" is a file of that name.

A part of a page can be run: the section of a heading, and one tab of it.
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
    """A command and its documented output."""

    command: tuple[str, ...]
    shown: str
    output: str


def examples(text: str) -> Iterator[Example]:
    """Yield the examples of a page or a part of it, in order."""
    for kind, body, output in _BLOCK.findall(text):
        if file := _FILE.match(body):
            yield Example((sys.executable, "-c", _WRITE, file[1], body), body, output)
        elif kind == "python":
            yield Example((sys.executable, "-c", body), body, output)
        elif kind == "console":
            for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", body, re.MULTILINE):
                yield Example(("bash", "-c", command), command, printed)


def section(text: str, heading: str) -> str:
    """Return the section of a heading, such as "## Install"."""
    # A "#" in a code block begins a comment.
    bare = _FENCED.sub(lambda block: " " * len(block[0]), text)
    level = len(heading.split()[0])
    found = re.search(
        rf"^{re.escape(heading)}\n.*?(?=^#{{1,{level}}} |\Z)", bare, re.MULTILINE | re.DOTALL
    )
    assert found, f"no heading {heading!r}"
    return text[slice(*found.span())]


def tab(text: str, title: str) -> str:
    """Return a part of a page with only the tabs of this title."""
    assert any(found[1] == title for found in _TAB.finditer(text)), f"no tab {title}"
    return _TAB.sub(lambda found: found[2] if found[1] == title else "", text)


def printed_by(example: Example, environment: Mapping[str, str], directory: Path) -> str:
    """Run an example and return its output; a failure shows its standard error."""
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
    """Return whether outputs match, except trailing blanks and "..."."""
    pattern = ".*".join(re.escape(part) for part in _trimmed(shown).split("..."))
    return re.fullmatch(pattern, _trimmed(printed), re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())
