"""The private PostgreSQL: shared by processes, removed after the last, recovered after a crash."""

import os
import signal
import subprocess
from pathlib import Path

import psycopg
import pytest

from rowq.tools.local_postgres.server import LocalPostgres, LocalPostgresError
from tests.demo.clients import after_name, answer, client, eventually, pid_from, runs


def test_server_stops_with_its_user_and_keeps_data(home: Path) -> None:
    with LocalPostgres(home) as server:
        answer(server.url, "select 1", after="create table kept as select 42 as value")
        first = server.pid
    assert not runs(first)
    with LocalPostgres(home) as server:
        assert answer(server.url, "select value from kept") == 42
        assert server.pid != first


def test_server_listens_on_no_port(home: Path) -> None:
    with LocalPostgres(home) as server:
        assert answer(server.url, "show listen_addresses") == ""
        assert Path(server.url.partition("host=")[2].replace("%2F", "/")).stat().st_mode & 0o77 == 0


def test_psql_accepts_url(home: Path) -> None:
    with LocalPostgres(home) as server:
        said = subprocess.check_output([server.bin_dir / "psql", server.url, "-Atc", "select 7"])
    assert said == b"7\n"


@pytest.mark.parametrize("name", ["with a space", 'with a "quote", and a comma', "ünï côdé %41"])
def test_any_directory_name_works(home: Path, name: str) -> None:
    with LocalPostgres(home / name) as server:
        assert answer(server.url, "select 7") == 7


def test_long_path_works_and_leaves_nothing_elsewhere(home: Path) -> None:
    with LocalPostgres(home / ("long" * 40)) as server:
        url = server.url
        assert answer(url, "select 7") == 7
        server.restart()
        assert server.url == url
        assert answer(url, "select 7") == 7
        short = (home / ("long" * 40) / "run").readlink()
        assert short.is_dir()
    assert not short.exists()


def test_running_server_refuses_other_settings(home: Path) -> None:
    with LocalPostgres(home, settings={"work_mem": "7MB"}) as server:
        assert answer(server.url, "show work_mem") == "7MB"
        with pytest.raises(LocalPostgresError, match="other settings"), LocalPostgres(home):
            pass
        assert answer(server.url, "select 7") == 7


def test_libpq_variables_do_not_reach_server(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGPORT": "1", "PGDATA": "/nowhere", "PGHOST": "nowhere"}.items():
        monkeypatch.setenv(name, value)
    with LocalPostgres(home) as server:
        monkeypatch.delenv("PGPORT")
        assert answer(server.url, "select 7") == 7


def test_other_version_than_data_is_refused(home: Path) -> None:
    with LocalPostgres(home):
        pass
    (home / "data" / "PG_VERSION").write_text("9\n")
    with pytest.raises(LocalPostgresError, match="are of PostgreSQL 9"), LocalPostgres(home):
        pass


def test_missing_programs_suggest_installation(home: Path) -> None:
    with pytest.raises(LocalPostgresError, match="pip install"), LocalPostgres(home, major=9):
        pass


def test_failed_start_reports_log(home: Path) -> None:
    wrong = LocalPostgres(home, settings={"work_mem": "a lot"})
    with pytest.raises(LocalPostgresError, match='invalid value for parameter "work_mem"'), wrong:
        pass


def test_four_processes_share_a_server(home: Path) -> None:
    with client(home) as a, client(home) as b, client(home) as c, client(home) as d:
        pids = [pid_from(process) for process in (a, b, c, d)]
        assert len(set(pids)) == 1
        for process in (a, b, c, d):
            assert runs(pids[0])
            process.communicate()
        assert not runs(pids[0])


def test_killed_client_does_not_stop_shared_server(home: Path) -> None:
    with LocalPostgres(home) as server, client(home) as other:
        assert pid_from(other) == server.pid
        other.kill()
        other.wait()
        assert answer(server.url, "select 7") == 7
    assert not runs(server.pid)


def test_server_stops_if_its_only_client_is_killed(home: Path) -> None:
    with client(home) as only:
        pid = pid_from(only)
        only.kill()
        assert eventually(lambda: not runs(pid))
    with LocalPostgres(home) as server:
        assert answer(server.url, "select 7") == 7


def test_client_killed_during_initdb_leaves_no_partial_cluster(home: Path) -> None:
    with client(home) as impatient:
        assert eventually((home / "data.new").exists)
        impatient.kill()
    with LocalPostgres(home) as server:
        assert answer(server.url, "select 7") == 7


def test_server_without_watchdog_stops_with_last_user(home: Path) -> None:
    with LocalPostgres(home) as server:
        watchdog = int(after_name(server.pid)[1])
        os.kill(watchdog, signal.SIGKILL)
        assert eventually(lambda: not runs(watchdog))
        with LocalPostgres(home) as same:
            assert same.pid == server.pid
    assert not runs(server.pid)


def test_crashed_server_restarts_with_committed_data(home: Path) -> None:
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


def test_stale_pid_file_is_ignored(home: Path) -> None:
    with LocalPostgres(home):
        pass
    left = ["", str(home / "data"), "0", "5432", "", "", "", "ready", ""]
    (home / "data" / "postmaster.pid").write_text("\n".join([str(os.getpid()), *left[1:]]))
    with LocalPostgres(home) as server:
        assert answer(server.url, "select 7") == 7
