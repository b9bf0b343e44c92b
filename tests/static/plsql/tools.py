"""Finds and installs the parser behind the PL/SQL gate: npm packages in the virtual environment.

They are a grammar of Oracle's SQL and PL/SQL and the runtime it needs. Node runs them in a process
of its own; nothing of them is part of rowq.
"""

import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(sys.prefix) / "plsql"
PARSER = Path(__file__).with_name("parse.mjs")

FETCH = "python -m tests.static.plsql --fetch"
"""The command that sets the gate up."""

PACKAGES = Path(__file__).with_name("package.json")
_GRAMMAR = FOLDER / "node_modules" / "@griffithswaite" / "ts-plsql-parser"


def missing() -> str | None:
    """Return why the gate cannot run here and what to do about it, or None when it can."""
    if not shutil.which("node"):
        return "the PL/SQL gate needs Node.js: apt-get install nodejs npm"
    if not _GRAMMAR.exists():
        return f"the PL/SQL gate is not set up: {FETCH}"
    return None


def fetch() -> None:
    """Install the packages into the folder; takes a download of about 15 MB, once.

    Raises:
        subprocess.CalledProcessError: npm could not get or install them.
    """
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    shutil.copy(PACKAGES, FOLDER)
    quiet = ("--no-audit", "--no-fund", "--loglevel=error")
    subprocess.run(["npm", "install", *quiet, "--prefix", str(FOLDER)], check=True)
