"""TypeScript on Node.js; compiling checks the types."""

import shutil
import subprocess
from pathlib import Path

from sql.generate.typescript import types
from tests.engines.base import Server
from tests.examples.programs import EXAMPLES, Programs
from tests.helpers.npm import package

ENGINES = ("postgres",)


def programs(server: Server, url: str, target: Path) -> Programs:  # noqa: ARG001
    """Compile the programs, once per process; fails for wrong types."""
    folder = target.parent / "typescript"
    if not (folder / "dist").is_dir():
        _compile(folder)
    return Programs(
        worker=("node", "dist/worker.js"),
        enqueue=("node", "dist/enqueue.js"),
        environment={"DATABASE_URL": url},
        directory=folder,
    )


def _compile(folder: Path) -> None:
    compiler = package("typescript")
    shutil.copytree(EXAMPLES / "typescript", folder, dirs_exist_ok=True)
    (folder / "rowq.ts").write_text(types(), encoding="utf-8")
    modules = folder / "node_modules"
    if not modules.exists():
        modules.symlink_to(compiler.parent)
    done = subprocess.run(
        ["node", compiler / "bin" / "tsc", "--noEmitOnError"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
