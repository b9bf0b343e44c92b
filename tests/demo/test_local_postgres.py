"""The private PostgreSQL: shared, gone with its last user, and without a trace elsewhere."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from rowq.demo import postgres_binaries
from rowq.demo.local_postgres import LocalPostgres, LocalPostgresError
from rowq.demo.postgres_binaries import VARIABLE, choose_binaries
from rowq.demo.postgres_room import _copy_programs

PACKAGES = Path(postgres_binaries.__file__).parents[2]
ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not ROOT, reason="only root meets this; run the tests as root")

# Uses the server in argv[1], says its pid, and holds it until its standard input ends.
CLIENT = """
import sys
from pathlib import Path
from rowq.demo.local_postgres import LocalPostgres
with LocalPostgres(Path(sys.argv[1])) as server:
    print(server.pid, server.url, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """Return a directory of our own that any user can reach."""
    directory = Path(tempfile.mkdtemp(prefix="rowq-test-"))
    yield directory / "server"
    shutil.rmtree(directory)


@pytest.fixture(autouse=True)
def _passable_parent(home: Path) -> None:
    home.parent.chmod(0o711)


@contextmanager
def client(home: Path) -> Iterator[subprocess.Popen[str]]:
    """Run another process that uses the server, until the block ends."""
    command = [sys.executable, "-c", CLIENT, str(home)]
    environment = os.environ | {"PYTHONPATH": str(PACKAGES)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def pid_from(process: subprocess.Popen[str]) -> int:
    """Wait until a client uses the server, and return the server's pid."""
    assert process.stdout is not None
    return int(process.stdout.readline().split()[0])


def runs(pid: int) -> bool:
    """Return whether a process has this pid and has not ended, reaped or not."""
    try:
        return _after_name(pid)[0] != "Z"
    except FileNotFoundError:
        return False


def _after_name(pid: int) -> list[str]:
    """Return what Linux says of a process: its state, its parent's pid and more."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def eventually(condition: Callable[[], bool], seconds: float = 20) -> bool:
    """Return whether a condition comes true within some seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def answer(url: str, query: str, *, after: str = "select 1") -> object:
    """Return the only value of a query, run after another statement."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(after)
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def test_stops_with_its_user_and_keeps_the_data_for_the_next_one(home: Path) -> None:
    with LocalPostgres(home) as server:
        answer(server.url, "select 1", after="create table kept as select 42 as value")
        first = server.pid
    assert not runs(first)
    with LocalPostgres(home) as server:
        assert answer(server.url, "select value from kept") == 42
        assert server.pid != first


def test_listens_on_no_port(home: Path) -> None:
    with LocalPostgres(home) as server:
        assert answer(server.url, "show listen_addresses") == ""
        assert Path(server.url.partition("host=")[2].replace("%2F", "/")).stat().st_mode & 0o77 == 0


def test_psql_takes_the_url(home: Path) -> None:
    with LocalPostgres(home) as server:
        said = subprocess.check_output([server.bin_dir / "psql", server.url, "-Atc", "select 7"])
    assert said == b"7\n"


@pytest.mark.parametrize("name", ["with a space", 'with a "quote", and a comma', "ünï côdé %41"])
def test_any_directory_name_works(home: Path, name: str) -> None:
    with LocalPostgres(home / name) as server:
        assert answer(server.url, "select 7") == 7


def test_a_path_too_long_for_a_socket_works_and_leaves_nothing_elsewhere(home: Path) -> None:
    with LocalPostgres(home / ("long" * 40)) as server:
        url = server.url
        assert answer(url, "select 7") == 7
        server.restart()
        assert server.url == url
        assert answer(url, "select 7") == 7
        short = (home / ("long" * 40) / "run").readlink()
        assert short.is_dir()
    assert not short.exists()


def test_settings_reach_the_server_and_others_are_refused_while_it_runs(home: Path) -> None:
    with LocalPostgres(home, settings={"work_mem": "7MB"}) as server:
        assert answer(server.url, "show work_mem") == "7MB"
        with pytest.raises(LocalPostgresError, match="other settings"), LocalPostgres(home):
            pass
        assert answer(server.url, "select 7") == 7


def test_variables_of_libpq_do_not_reach_the_server(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PGPORT": "1", "PGDATA": "/nowhere", "PGHOST": "nowhere"}.items():
        monkeypatch.setenv(name, value)
    with LocalPostgres(home) as server:
        monkeypatch.delenv("PGPORT")
        assert answer(server.url, "select 7") == 7


def test_another_version_than_that_of_the_data_is_refused(home: Path) -> None:
    with LocalPostgres(home):
        pass
    (home / "data" / "PG_VERSION").write_text("9\n")
    with pytest.raises(LocalPostgresError, match="are of PostgreSQL 9"), LocalPostgres(home):
        pass


def test_missing_programs_are_an_error_that_says_what_to_install(home: Path) -> None:
    with pytest.raises(LocalPostgresError, match="pip install"), LocalPostgres(home, major=9):
        pass


def test_a_server_that_does_not_start_says_why(home: Path) -> None:
    wrong = LocalPostgres(home, settings={"work_mem": "a lot"})
    with pytest.raises(LocalPostgresError, match='invalid value for parameter "work_mem"'), wrong:
        pass


def test_four_processes_at_once_share_one_server(home: Path) -> None:
    with client(home) as a, client(home) as b, client(home) as c, client(home) as d:
        pids = [pid_from(process) for process in (a, b, c, d)]
        assert len(set(pids)) == 1
        for process in (a, b, c, d):
            assert runs(pids[0])
            process.communicate()
        assert not runs(pids[0])


def test_a_killed_client_does_not_take_the_server_from_the_others(home: Path) -> None:
    with LocalPostgres(home) as server, client(home) as other:
        assert pid_from(other) == server.pid
        other.kill()
        other.wait()
        assert answer(server.url, "select 7") == 7
    assert not runs(server.pid)


def test_the_server_stops_when_its_only_client_is_killed(home: Path) -> None:
    with client(home) as only:
        pid = pid_from(only)
        only.kill()
        assert eventually(lambda: not runs(pid))
    with LocalPostgres(home) as server:
        assert answer(server.url, "select 7") == 7


def test_a_client_killed_while_the_cluster_is_made_leaves_no_half_of_it(home: Path) -> None:
    with client(home) as impatient:
        assert eventually((home / "data.new").exists)
        impatient.kill()
    with LocalPostgres(home) as server:
        assert answer(server.url, "select 7") == 7


def test_a_server_without_its_keeper_still_stops_with_its_last_user(home: Path) -> None:
    with LocalPostgres(home) as server:
        keeper = int(_after_name(server.pid)[1])
        os.kill(keeper, signal.SIGKILL)
        assert eventually(lambda: not runs(keeper))
        with LocalPostgres(home) as same:
            assert same.pid == server.pid
    assert not runs(server.pid)


def test_a_crashed_server_comes_back_with_what_was_committed(home: Path) -> None:
    with LocalPostgres(home) as server:
        answer(server.url, "select 1", after="create table kept as select 42 as value")
        with psycopg.connect(server.url) as open_session:
            open_session.execute("delete from kept")
            server.kill()
            open_session.close()
        server.restart()
        assert answer(server.url, "select value from kept") == 42
        with LocalPostgres(home) as same:
            assert same.pid == server.pid


def test_a_pid_file_left_by_a_crash_is_not_believed(home: Path) -> None:
    with LocalPostgres(home):
        pass
    left = ["", str(home / "data"), "0", "5432", "", "", "", "ready", ""]
    (home / "data" / "postmaster.pid").write_text("\n".join([str(os.getpid()), *left[1:]]))
    with LocalPostgres(home) as server:
        assert answer(server.url, "select 7") == 7


@as_root
@pytest.mark.parametrize("namespaces", [True, False], ids=["with unshare", "without unshare"])
def test_root_can_run_it_below_a_directory_closed_to_others(
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
        room = Path(str(answer(server.url, "show data_directory"))).parent
    assert (room == home) is namespaces
    assert home.parent.stat().st_mode & 0o777 == 0o700
    shutil.rmtree(room)


@as_root
def test_the_cluster_follows_when_root_has_to_run_it_in_another_way(home: Path) -> None:
    for mode, value in ((0o711, 1), (0o700, 2), (0o711, 3)):
        home.parent.chmod(mode)
        with LocalPostgres(home) as server:
            tables = "select count(*) from pg_tables where schemaname = 'public'"
            made = f"create table t{value} as select 1"
            assert answer(server.url, tables, after=made) == value


@as_root
def test_an_ordinary_user_can_run_it(home: Path) -> None:
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
    """Return a Python that the user nobody can run."""
    for python in (sys.executable, "/usr/bin/python3"):
        check = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        try:
            if subprocess.run(check, user="nobody", cwd="/", check=False).returncode == 0:
                return python
        except OSError:
            continue
    pytest.skip("the user nobody can run no Python >= 3.11 here; install python3")


def test_nothing_outside_its_directory_changes(home: Path) -> None:
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
