"""Generate the synchronous modules of rowq from the asynchronous ones."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "python_client" / "rowq"

# Applied in order, each to the whole text.
REPLACEMENTS = (
    (
        r"(?s)\A(.*?)(\w+)\.py is made from this file by make generate\.\n\n",
        r"# Generated from async-\2.py by make generate. Do not edit.\n\1",
    ),
    (r"AsyncQueue needs an asynchronous", "Queue needs a synchronous"),
    (r"; Queue takes", "; async-Queue takes"),
    (r"if not self\._source\.is_async", "if self._source.is_async"),
    (r"import Awaitable, ", "import "),
    (r"Awaitable\[((?:[^\[\]]|\[[^\]]*\])+)\]", r"\1"),
    (r"import asyncio\n", "import threading\n"),
    (r"asyncio\.sleep", "time.sleep"),
    (r"asyncio\.Lock", "threading.Lock"),
    (r"Tasks that share", "Threads that share"),
    (r"in another task", "in another thread"),
    (r"from rowq\.awaitable import may_be_entered\n|@may_be_entered\n", ""),
    (r"\basync (def|with|for) ", r"\1 "),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit)__", r"__\1__"),
    (
        r"\b(connect|connect_striped|call|close|break_off|driver_connection|savepoint|dequeue_wait"
        r"|is_direct)_async\b",
        r"\1",
    ),
    (r"\basync_(session|queue|striped)\b", r"\1"),
    (r"\ban Async(Queue|Striped)\b", r"a \1"),
    (r"\bAsync(Queue|Striped|Session|BorrowedSession|OwnedSession)\b", r"\1"),
    (r"async-Queue", "AsyncQueue"),
    (r"async-(\w+\.py)", r"async_\1"),
)


def synchronous(module: str) -> str:
    """Return the formatted synchronous form of an asynchronous module."""
    source = (PACKAGE / module).read_text(encoding="utf-8")
    for pattern, replacement in REPLACEMENTS:
        source = re.sub(pattern, replacement, source)
    sorted_imports = _ruff(source, "check", "--quiet", "--select", "I,F401", "--fix")
    return _ruff(sorted_imports, "format")


def _ruff(source: str, *arguments: str) -> str:
    import_module("ruff")  # Raise an error that names it if it is missing.
    made = str(PACKAGE / "made.py")
    command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", made, "-"]
    done = subprocess.run(command, input=source, stdout=subprocess.PIPE, text=True, check=True)
    return str(done.stdout)
