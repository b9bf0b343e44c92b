"""User of the private PostgreSQL; the rest of the machine stays unchanged."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rowq.tools.local_postgres.directory import VARIABLE, _copy_programs, choose_binaries
from rowq.tools.local_postgres.server import LocalPostgres
from tests.demo.clients import CLIENT, PACKAGES, answer, runs

ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(
    not ROOT, reason="only root meets this; to run it: run the tests as root"
)


@as_root
@pytest.mark.parametrize("namespaces", [True, False], ids=["with unshare", "without unshare"])
def test_root_can_run_server_below_private_directory(
    home: Path, monkeypatch: pytest.MonkeyPatch, namespaces: bool
) -> None:
    home.parent.chmod(0o700)
    programs = _copy_programs(choose_binaries().bin_dir, home.parent / "wheel")
    monkeypatch.setenv(VARIABLE, str(programs))
    if not namespaces:
        monkeypatch.setenv("PATH", str(home.parent))
    with LocalPostgres(home) as server:
        answer(server.url, "select 1", after="create table kept as select 42 as value")
    with LocalPostgres(home) as server:
        assert answer(server.url, "select value from kept") == 42
        directory = Path(str(answer(server.url, "show data_directory"))).parent
    assert (directory == home) is namespaces
    assert home.parent.stat().st_mode & 0o777 == 0o700
    shutil.rmtree(directory)


@as_root
def test_cluster_changes_owner_with_way_of_running(home: Path) -> None:
    for mode, value in ((0o711, 1), (0o700, 2), (0o711, 3)):
        home.parent.chmod(mode)
        with LocalPostgres(home) as server:
            tables = "select count(*) from pg_tables where schemaname = 'public'"
            made = f"create table t{value} as select 1"
            assert answer(server.url, tables, after=made) == value


@as_root
def test_ordinary_user_can_run_server(home: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    python = _python_for_everybody()
    shutil.copytree(PACKAGES / "rowq", home.parent / "rowq")
    for directory, _, files in os.walk(home.parent):
        Path(directory).chmod(0o755)
        for file in files:
            Path(directory, file).chmod(0o644)
    programs = _copy_programs(choose_binaries().bin_dir, home.parent / "wheel")
    home.mkdir()
    shutil.chown(home, "nobody")
    environment = {"PYTHONPATH": str(home.parent), VARIABLE: str(programs), "PATH": os.defpath}
    done = subprocess.run(
        [python, "-c", CLIENT, str(home)],
        env=environment,
        cwd="/",
        input="",
        capture_output=True,
        text=True,
        check=False,
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
    )
    assert done.returncode == 0, done.stderr
    pid, url = done.stdout.split()
    assert not runs(int(pid))
    assert str(home).replace("/", "%2F") in url
    assert {path.owner() for path in home.iterdir()} == {"nobody"}


def _python_for_everybody() -> str:
    """Return a Python that the user `nobody` can run."""
    for python in (sys.executable, "/usr/bin/python3"):
        check = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        try:
            if subprocess.run(check, user="nobody", cwd="/", check=False).returncode == 0:
                return python
        except OSError:
            continue
    pytest.skip("the user nobody can run no Python >= 3.11 here; to run it: install python3")


def test_nothing_outside_directory_changes(home: Path) -> None:
    def look(path: Path) -> tuple[int, int, int]:
        found = path.lstat()
        return found.st_mode, found.st_uid, found.st_gid

    bin_dir = choose_binaries().bin_dir
    watched = [*home.parents, bin_dir, *bin_dir.parents, *bin_dir.parent.rglob("*")]
    watched += [Path("/etc/passwd"), Path("/etc/group"), Path(tempfile.gettempdir())]
    accounts = Path("/etc/passwd").read_bytes(), Path("/etc/group").read_bytes()
    before = {path: look(path) for path in watched}
    with LocalPostgres(home) as server:
        answer(server.url, "select 7")
    assert {path: look(path) for path in watched} == before
    assert (Path("/etc/passwd").read_bytes(), Path("/etc/group").read_bytes()) == accounts
