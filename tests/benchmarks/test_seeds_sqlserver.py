"""The seeds on SQL Server: its session, its counters, its forms, and the command."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from benchmarks.engines.sqlserver.session import SqlserverSession
from benchmarks.engines.sqlserver.statistics_io import Reads, parse
from benchmarks.harness.session import RetryError
from benchmarks.studies import command
from benchmarks.studies.seeds import seed_000, seed_002
from benchmarks.studies.seeds.all_seeds import SEEDS, seeds_scenarios
from benchmarks.studies.seeds.base import Form, sql_form
from benchmarks.studies.seeds.dialects import DIALECTS
from benchmarks.studies.seeds.sections import read_sections
from tests.engines.base import wait_until
from tests.static.sources import ROOT

ROOMS = [(seed.name, seed.folder) for seed in SEEDS] + [("rowq", SEEDS[0].folder.parent / "rowq")]
COUNTERS = "logical reads {}, physical reads 0, page server reads 0, read-ahead reads 0, "
LOBS = "page server read-ahead reads 0, lob logical reads {}, lob physical reads 0, "
SAID = f"[Some][driver]Table '{{}}'. Scan count 1, {COUNTERS}{LOBS}lob read-ahead reads 0."
PAGES = "select logical_reads from sys.dm_exec_sessions where session_id = @@spid"

at_a_url = pytest.mark.parametrize("engine", ["sqlserver"], indirect=True)


@pytest.fixture
def url(engine: str, place: Callable[[Form], Any]) -> Any:
    """Return the URL of a database with the form of seed 002 that waits for locked rows."""
    with place(sql_form("for_update", "", seed_002.FOLDER, engine)) as url:
        yield url


def sections_of(path: Path) -> set[str]:
    """Return the names of a file's sections."""
    return set(read_sections(path))


def sections_by_file(room: Path, engine: str) -> dict[str, set[str]]:
    """Return the sections of every file of an engine; rowq has one file, named after it."""
    if room.name == "rowq":
        return {"rowq": sections_of(room / f"{engine}.sql")}
    return {path.name: sections_of(path) for path in (room / engine).glob("*.sql")}


@pytest.mark.parametrize(("name", "room"), ROOMS, ids=[name for name, _ in ROOMS])
def test_every_form_that_postgresql_has_is_there_with_the_same_sections(
    name: str, room: Path
) -> None:
    found = sections_by_file(room, "sqlserver")
    assert found == sections_by_file(room, "postgres"), name
    assert found


def test_bodies_have_as_many_bytes_as_on_other_engines() -> None:
    sizes = [
        {scenario.name: scenario.body_bytes for scenario in seeds_scenarios(engine)}
        for engine in ("postgres", "sqlserver")
    ]
    assert {name: size // 2 for name, size in sizes[0].items()} == sizes[1]


def test_reads_are_added_up_over_tables_and_other_messages_say_nothing() -> None:
    said = [
        SAID.format("#A1B2C3D4", 7, 0),
        SAID.format("queue", 100, 20) + "\n" + SAID.format("Worktable", 5, 3),
        "something else",
        SAID.format("queue", 1, 2),
    ]
    assert parse(said) == Reads(113, 25)


def test_whoever_measures_another_engine_needs_no_pyodbc() -> None:
    text = "import sys; sys.modules['pyodbc'] = None; import benchmarks.studies.seeds.report"
    subprocess.run([sys.executable, "-c", text], check=True, cwd=ROOT)


@pytest.mark.parametrize("word", ["sqlserver://localhost:1/master", "nonsense"])
def test_a_server_that_does_not_answer_ends_the_command_with_a_reason(
    word: str, tmp_path: Path
) -> None:
    words = ["--engine", "sqlserver", "--set", "seeds", "--to", str(tmp_path), "--url", word]
    with pytest.raises(SystemExit, match="there is no SQL Server"):
        command.main(words)
    assert not list(tmp_path.rglob("*.json"))


@at_a_url
def test_values_are_put_in_by_their_names(url: str, engine: str) -> None:
    body = "Grüße, " * 2000
    with DIALECTS[engine].open(url) as session:
        rows = session.run(
            "select :text, :number, :large, :text where :number in (:many)",
            text=body.encode(),
            number=7,
            large=2**40,
            many=[5, 6, 7],
        )
        assert rows == [(body.encode(), b"7", b"%d" % 2**40, body.encode())]
        assert session.run("select cast(null as int)") == [(None,)]


@at_a_url
def test_an_error_of_the_server_is_told_in_its_words(url: str, engine: str) -> None:
    with DIALECTS[engine].open(url) as session:
        with pytest.raises(RuntimeError, match="no_such_table"):
            session.run("select 1 from dbo.no_such_table")
        with pytest.raises(RetryError, match="another session"):
            session.run("throw 50001, N'another session has taken some of them', 1")
        session.run("rollback")
        assert session.run("select 1") == [(b"1",)]


@at_a_url
def test_what_a_session_began_it_takes_back(url: str, engine: str) -> None:
    with DIALECTS[engine].open(url) as session:
        session.run("begin")
        session.run("insert into dbo.job (body) values (:body)", body=b"one")
        assert session.affected == 1
        session.run("rollback")
        assert session.run("select count(*) from dbo.job") == [(b"0",)]


@pytest.mark.genuine
@at_a_url
def test_a_session_that_waits_too_long_may_try_again_and_its_wait_is_counted(
    url: str, engine: str
) -> None:
    dialect = DIALECTS[engine]
    with (
        dialect.open(url) as holder,
        dialect.open(url) as waiting,
        dialect.observe(url) as observer,
    ):
        holder.run("insert into dbo.job (body) values (:body)", body=b"one")
        before = observer.counts()
        holder.run("begin")
        holder.run("exec dbo.get_jobs :batch", batch=1)
        waiting.run(dialect.impatient)
        with pytest.raises(RetryError):
            waiting.run("exec dbo.get_jobs :batch", batch=1)
        holder.run("rollback")
        used = observer.counts().since(before)
        assert used.lock_waits == 1
        assert 0.5 < used.lock_wait_seconds < 5


@pytest.mark.genuine
@at_a_url
def test_a_deadlock_is_counted_and_its_victim_may_try_again(url: str, engine: str) -> None:
    dialect = DIALECTS[engine]
    text = "update dbo.job set state = 'A' where job_id = :id"
    with (
        dialect.open(url) as first,
        dialect.open(url) as second,
        dialect.observe(url) as observer,
        ThreadPoolExecutor(1) as threads,
    ):
        for _ in range(2):
            first.run("insert into dbo.job (body) values (:body)", body=b"job")
        before = observer.counts().deadlocks
        for session, number in ((first, 1), (second, 2)):
            session.run("begin")
            session.run(text, id=number)
        waiting = threads.submit(first.run, text, id=2)
        waits = "select 1 from sys.dm_os_waiting_tasks where session_id = :session"
        with dialect.open(url) as third:
            wait_until(lambda: bool(third.run(waits, session=first.backend)), "one waits", 30)
        victims = 0
        try:
            second.run(text, id=1)
        except RetryError:
            victims += 1
        second.run("rollback")
        victims += isinstance(waiting.exception(30), RetryError)
        first.run("rollback")
        assert victims == 1
        assert observer.counts().deadlocks == before + 1


@pytest.mark.genuine
@at_a_url
@pytest.mark.parametrize("name", ["queue_slow", "split_tables", "one_statement"])
def test_what_a_dequeue_is_said_to_read_is_what_its_session_has_read(
    name: str, engine: str, place: Callable[[Form], Any]
) -> None:
    """A driver that loses a message of STATISTICS IO would make the figures too small."""
    form = sql_form(name, "", seed_000.FOLDER, engine)
    with (
        place(form) as url,
        form.open_client(url, 12_000) as client,
        DIALECTS[engine].observe(url) as observer,
    ):
        assert isinstance(client.session, SqlserverSession)
        client.fill(300)
        client.settle()
        for _ in range(3):
            client.complete(client.dequeue(10))
        ((start,),) = client.session.run(PAGES)
        before = observer.counts(client.session)
        client.dequeue(10)
        used = observer.counts(client.session).since(before)
        ((end,),) = client.session.run(PAGES)
        assert used.reads > 0
        assert used.body_reads > 0
        # The session may read a page of the catalog besides.
        said = used.reads + used.body_reads
        assert said <= int(end or 0) - int(start or 0) <= said + 50
