"""Go, with Debian's pgx 4 instead of pgx 5."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.engines.base import TO_RUN, Server
from tests.examples.programs import EXAMPLES, Programs, need

ENGINES = ("postgres",)
_PACKAGES = "golang-go golang-github-jackc-pgx-v4-dev"
_LIBRARIES = Path("/usr/share/gocode")
_WRITTEN, _AT_HAND = "github.com/jackc/pgx/v5", "github.com/jackc/pgx/v4"
_FILES = {"worker": ("worker.go", "calls.go"), "enqueue": ("enqueue.go",)}


def programs(server: Server, url: str, target: Path) -> Programs:  # noqa: ARG001
    """Compile the programs with the installed pgx."""
    go = need_go()
    folder = target.parent / "go"
    if not (folder / "enqueue").exists():
        _compile(go, folder)
    for name in _FILES:
        (target / name).symlink_to(folder / name)
    return Programs(
        worker=("./worker",),
        enqueue=("./enqueue",),
        environment={"DATABASE_URL": url},
        directory=target,
    )


def need_go() -> str:
    """Return the path of Go; skip the test if it or pgx is missing."""
    go = need("go", _PACKAGES)
    if not (_LIBRARIES / "src" / _AT_HAND).is_dir():
        pytest.skip(f"no {_AT_HAND}{TO_RUN}apt-get install {_PACKAGES}")
    return go


def at_hand(text: str) -> str:
    """Return a program that imports the installed pgx."""
    return text.replace(_WRITTEN, _AT_HAND)


def environment(cache: Path) -> dict[str, str]:
    """Return environment variables for Debian's packages."""
    return {"GO111MODULE": "off", "GOPATH": str(_LIBRARIES), "GOCACHE": str(cache)}


def _compile(go: str, folder: Path) -> None:
    """Compile all programs to a folder shared by the tests of one process."""
    folder.mkdir(exist_ok=True)
    for path in (EXAMPLES / "go").glob("*.go"):
        text = at_hand(path.read_text(encoding="utf-8"))
        (folder / path.name).write_text(text, encoding="utf-8")
    told = {**os.environ, **environment(folder / "cache")}
    for name, files in _FILES.items():
        for command in (["vet"], ["build", "-o", name]):
            subprocess.run([go, *command, *files], cwd=folder, env=told, check=True)
