"""Find and install the PL/SQL parser: a grammar and its runtime, as npm packages in .venv.

Node.js runs them; rowq does not contain them.
"""

import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(sys.prefix) / "plsql"
PARSER = Path(__file__).with_name("parse.mjs")

FETCH = "python -m tests.static.plsql --fetch"
"""The command that sets up the gate."""

PACKAGES = Path(__file__).with_name("package.json")
_GRAMMAR = FOLDER / "node_modules" / "@griffithswaite" / "ts-plsql-parser"


def missing() -> str | None:
    """Return why the gate cannot run, with the remedy, or None."""
    if not shutil.which("node"):
        return "the PL/SQL gate needs Node.js: apt-get install nodejs npm"
    if not _GRAMMAR.exists():
        return f"the PL/SQL gate is not set up: {FETCH}"
    return None


def fetch() -> None:
    """Install the packages, a download of about 15 MB; raise CalledProcessError."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    shutil.copy(PACKAGES, FOLDER)
    quiet = ("--no-audit", "--no-fund", "--loglevel=error")
    subprocess.run(["npm", "install", *quiet, "--prefix", str(FOLDER)], check=True)
