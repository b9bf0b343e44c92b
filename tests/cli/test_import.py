"""rowq import --from csv; for other systems see engine_only/postgres/test_import.py."""

import csv
import hashlib
import io
import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pgmq.install import get_embedded_install_sql

import rowq
from rowq.bodies import batch_entries
from rowq.contrib.imports.csv_file import CsvFile
from rowq.contrib.imports.source import origin_of
from rowq.contrib.imports.tables import rank_of, ranks
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.local_postgres.server import LocalPostgres, LocalPostgresError
from tests.cli.conftest import Run
from tests.engines.base import Server

NEXT_YEAR = datetime.now(UTC).year + 1
COLUMNS = ["id", "body", "message_type", "priority", "run_at", "group_key", "headers"]


def write(path: Path, columns: list[str], rows: list[list[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def digest(bodies: list[str | None]) -> str:
    return hashlib.sha256("\0".join(sorted(map(str, bodies))).encode()).hexdigest()


def waiting(queue: rowq.Queue, name: str) -> list[str | None]:
    return [message.body for message in queue.peek(name, max_messages=1000)]


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Return a file with five rows."""
    return write(
        tmp_path / "orders.csv",
        COLUMNS,
        [
            [1, '{"n": 1}', "placed", 0, "", "", '{"trace": "a"}'],
            [2, "text, with a comma", "", "", "", "", ""],
            [3, "ä\n🐘", "", 9, "", "", ""],
            [4, "", "", "", "", "", ""],
            [5, "later", "", "", f"{NEXT_YEAR}-01-31 18:00:00+01", "", ""],
        ],
    )


def test_import_reads_all_columns(run: Run, queue: rowq.Queue, made: str, orders: Path) -> None:
    done = run("import", "--from", "csv", orders, "--into", made, "--batch-size", 2, "--json")
    assert done.code == 0, done.err
    assert done.row == {
        "source": str(orders),
        "queue_name": made,
        "messages": 5,
        "later": 1,
        "tried": 0,
        "left": 0,
        "missing": False,
        "enqueued": 5,
        "duplicates": 0,
        "removed": 0,
        "overtaken": 0,
    }
    wanted: list[str | None] = ['{"n": 1}', "text, with a comma", "ä\n🐘", None]
    assert digest(waiting(queue, made)) == digest(wanted)
    first, second, third, last = queue.peek(made, max_messages=10)
    assert (first.message_type, first.priority, first.headers) == ("placed", 0, {"trace": "a"})
    assert (second.priority, third.body, last.priority) == (5, None, 9)
    (later,) = queue.list_delayed(made)
    assert later.due_at == datetime(NEXT_YEAR, 1, 31, 17, tzinfo=UTC)
    found = queue.find_message(made, f"csv:{origin_of(orders.resolve())}:3")
    assert found is not None
    assert found.body == "ä\n🐘"


def test_second_import_adds_nothing(run: Run, queue: rowq.Queue, made: str, orders: Path) -> None:
    for enqueued, duplicates in ((5, 0), (0, 5)):
        done = run("import", "--from", "csv", orders, "--into", made, "--json")
        assert (done.row["enqueued"], done.row["duplicates"]) == (enqueued, duplicates)
    stats = queue.queue_stats(made)[0]
    assert (stats.ready, stats.delayed) == (4, 1)


def test_rows_of_two_files_are_different_messages(
    run: Run, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    for name, body in (("a.csv", "first"), ("b.csv", "second")):
        file = write(tmp_path / name, ["id", "body"], [[1, body]])
        done = run("import", "--from", "csv", file, "--into", made, "--json")
        assert (done.row["enqueued"], done.row["duplicates"]) == (1, 0)
    assert waiting(queue, made) == ["first", "second"]


def test_import_batch_is_below_8_mebibytes() -> None:
    """A quote takes two bytes of JSON; headers count."""
    mebi = 1024 * 1024
    rows = [[1, '"' * 3 * mebi, ""], [2, "ä" * mebi, ""], [3, "x", json.dumps({"h": "x" * mebi})]]
    rows += [[4, "x" * 9 * mebi, ""], [5, "x", ""], [6, "x", ""]]
    text = io.StringIO()
    csv.writer(text).writerows([["id", "body", "headers"], *rows])
    source = CsvFile(io.BytesIO(text.getvalue().encode()))
    batches = []
    while items := source.page("file", 1000, lock=False):
        batches.append([int(item.id) for item in items])
        size = len(json.dumps(batch_entries([item.message for item in items])))
        assert size < 8 * mebi or len(items) == 1
    assert batches == [[1], [2, 3], [4], [5, 6]]


def test_dry_run_reports_missing_queue_and_changes_nothing(
    run: Run, queue: rowq.Queue, made: str, orders: Path
) -> None:
    done = run("import", "--from", "csv", orders, "--into", made, "--dry-run", "--json")
    assert (done.row["messages"], done.row["enqueued"], done.row["missing"]) == (5, 0, False)
    done = run("import", "--from", "csv", orders, "--into", f"{made}2", "--dry-run", "--json")
    assert (done.row["messages"], done.row["missing"]) == (5, True)
    assert queue.queue_stats(made)[0].ready == 0


def test_unknown_columns_become_body(
    run: Run, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "a.csv", ["id", "total", "name"], [[7, "1.50", "Zoë"]])
    assert run("import", "--from", "csv", file, "--into", made).code == 0
    assert [json.loads(body or "") for body in waiting(queue, made)] == [
        {"total": "1.50", "name": "Zoë"}
    ]


def test_import_uses_dedup_key_of_row(
    run: Run, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "a.csv", ["id", "dedup_key", "body"], [[1, "k", "a"], [2, "k", "b"]])
    done = run("import", "--from", "csv", file, "--into", made, "--json")
    assert (done.row["enqueued"], done.row["duplicates"]) == (1, 1)
    assert waiting(queue, made) == ["a"]


@pytest.mark.requires("groups")
def test_import_keeps_order_of_group(
    run: Run, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "a.csv", ["id", "group_key", "body"], [[1, "g", "a"], [2, "g", "b"]])
    assert run("import", "--from", "csv", file, "--into", made).code == 0
    stats = queue.queue_stats(made)[0]
    assert (stats.ready, stats.blocked, waiting(queue, made)) == (1, 1, ["a"])


@pytest.mark.requires("groups")
def test_import_warns_of_delayed_group_messages(run: Run, made: str, tmp_path: Path) -> None:
    rows: list[list[object]] = [[1, "g", f"{NEXT_YEAR}-01-31"], [2, "g", ""], [3, "", ""]]
    file = write(tmp_path / "a.csv", ["id", "group_key", "run_at"], rows)
    for more in ((), ("--dry-run",)):
        done = run("import", "--from", "csv", file, "--into", made, "--json", *more)
        assert (done.code, done.row["overtaken"]) == (0, 1)
        assert "warning: 1 delayed messages of" in done.err


@pytest.mark.parametrize(
    ("columns", "row", "said"),
    [
        (["id", "body"], ["", "x"], "line 3: id is required"),
        (["body"], ["x"], "line 2: id is required"),
        (["id", "priority"], [9, "high"], "line 3: priority must be an integer, got 'high'"),
        (["id", "run_at"], [9, "soon"], "line 3: run_at must be an ISO"),
        (["id", "headers"], [9, "[1]"], "line 3: headers must be a JSON object, got '[1]'"),
        (["id", "max_attempts"], [9, "1.5"], "line 3: max_attempts must be an integer"),
        (["id", "body", "total"], [9, "x", "2"], "unknown columns beside body: total"),
    ],
    ids=str,
)
def test_import_names_bad_row_and_keeps_earlier_batches(
    run: Run,
    queue: rowq.Queue,
    made: str,
    tmp_path: Path,
    columns: list[str],
    row: list[object],
    said: str,
) -> None:
    good = ["1" if name in {"id", "priority", "max_attempts"} else "" for name in columns]
    rows: list[list[object]] = [row] if "id" not in columns else [[*good], row]
    file = write(tmp_path / "bad.csv", columns, rows)
    done = run("import", "--from", "csv", file, "--into", made, "--batch-size", 1)
    assert (done.code, done.err.count("\n")) == (ExitCode.BAD_INPUT, 1)
    assert f"{file}, " in done.err
    assert said in done.err
    enqueued = len(rows) - 1 if "total" not in columns else 0
    assert queue.queue_stats(made)[0].ready == enqueued
    assert ("1 messages of" if enqueued else "No messages of") in done.err


def test_refused_batch_names_its_rows(
    run: Run, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    queue.alter_queue(made, max_body_length=10)
    rows: list[list[object]] = [[n, "x" * (100 if n == 5 else 1)] for n in range(1, 7)]
    file = write(tmp_path / "a.csv", ["id", "body"], rows)
    done = run("import", "--from", "csv", file, "--into", made, "--batch-size", 2)
    assert done.code == ExitCode.REFUSED
    assert "RQ711" in done.err
    assert "(line 6 to line 7). 4 messages of" in done.err
    queue.alter_queue(made, max_body_length=100)
    done = run("import", "--from", "csv", file, "--into", made, "--json")
    assert (done.row["enqueued"], done.row["duplicates"]) == (2, 4)


def test_interrupted_import_can_be_repeated(
    run: Run, queue: rowq.Queue, made: str, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue_batch = rowq.Queue.enqueue_batch
    calls = []

    def interrupted(self: rowq.Queue, name: str, messages: Any) -> Any:
        calls.append(messages)
        if len(messages) and len(calls) > 4:
            raise KeyboardInterrupt
        return enqueue_batch(self, name, messages)

    with monkeypatch.context() as patched:
        patched.setattr(rowq.Queue, "enqueue_batch", interrupted)
        done = run("import", "--from", "csv", orders, "--into", made, "--batch-size", 1)
    assert done.code == ExitCode.INTERRUPTED
    assert "interrupted. 2 messages of" in done.err
    assert queue.queue_stats(made)[0].ready == 2
    done = run("import", "--from", "csv", orders, "--into", made, "--json")
    assert (done.row["enqueued"], done.row["duplicates"]) == (3, 2)


def test_import_refuses_or_creates_missing_queue(
    run: Run, queue: rowq.Queue, queue_name: str, orders: Path
) -> None:
    done = run("import", "--from", "csv", orders, "--into", queue_name)
    assert (done.code, "RQ701" in done.err) == (ExitCode.REFUSED, True)
    done = run("import", "--from", "csv", orders, "--into", queue_name, "--create")
    assert (done.code, "enqueued" in done.out) == (0, True)
    assert queue.queue_stats(queue_name)[0].ready == 4


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--from", "sqs"),
        ("--from", "csv"),
        ("--from", "csv", "a.csv"),
        ("--from", "csv", "a.csv", "b.csv", "--into", "q"),
        ("--from", "csv", "a.csv", "--into", "q", "--remove"),
        ("--from", "csv", "a.csv", "--into", "q", "--schema", "s"),
        ("--from", "csv", "a.csv", "--into", "q", "--batch-size", 0),
        ("--from", "pgmq", "--from-url", "mariadb://u@127.0.0.1"),
    ],
    ids=str,
)
def test_invalid_arguments_are_wrong_usage(run: Run, arguments: tuple[object, ...]) -> None:
    assert run("import", *arguments).code == ExitCode.USAGE


def test_import_from_pgmq_works_on_any_engine(
    run: Run, queue: rowq.Queue, made: str, server: Server
) -> None:
    if server.engine == "postgres":
        pytest.skip("engine_only/postgres tests it; to run it: --engine mariadb")
    with tempfile.TemporaryDirectory(prefix="rowq-test-") as folder:
        try:
            local = LocalPostgres(Path(folder), 18, {"fsync": "off"}).__enter__()
        except LocalPostgresError as error:
            pytest.skip(f"no private PostgreSQL: {error}; to run it: make install")
        try:
            with psycopg.connect(local.url, autocommit=True) as source:
                source.execute(get_embedded_install_sql())
                source.execute("select pgmq.create('mail')")
                source.execute("select pgmq.send('mail', to_jsonb(n)) from generate_series(1, 7) n")
                source.execute("select pgmq.send('mail', '\"ä🐘\"', '{\"a\": null}', 3600)")
                options = ("--from", "pgmq", "--from-url", local.url, "--into", made, "--remove")
                done = run("import", *options, "--batch-size", 3, "--json")
                assert (done.code, done.row["enqueued"], done.row["removed"]) == (0, 8, 8), done.err
                assert source.execute("select count(*) from pgmq.q_mail").fetchone() == (0,)
        finally:
            local.__exit__(None, None, None)
    assert digest(waiting(queue, made)) == digest([str(n) for n in range(1, 8)])
    (delayed,) = queue.list_delayed(made)
    later = queue.get_message(made, delayed.message_id)
    assert later is not None
    assert (later.state, later.body, later.headers) == ("delayed", '"ä🐘"', {"a": None})


def test_import_hides_password_of_source(run: Run) -> None:
    done = run("import", "--from", "pgmq", "--from-url", "postgresql://u:hid&den@127.0.0.1:1/x")
    assert (done.code, "127.0.0.1" in done.err) == (ExitCode.NO_CONNECTION, True)
    assert "hid&den" not in done.err


@pytest.mark.parametrize(
    ("priorities", "wanted"),
    [
        ([], {0: 5}),
        ([0], {0: 5}),
        ([10, 0, -3], {10: 4, 0: 5, -3: 6}),
        ([1, 2, 3, 4, 5], {5: 0, 4: 1, 3: 2, 2: 3, 1: 4, 0: 5}),
        ([-1, -2, -3, -4], {0: 5, -1: 6, -2: 7, -3: 8, -4: 9}),
        ([100, 7], {100: 3, 7: 4, 0: 5}),
    ],
)
def test_priorities_keep_their_order(priorities: list[int], wanted: dict[int, int]) -> None:
    assert ranks(priorities) == wanted


def test_many_priorities_are_merged_in_order() -> None:
    found = ranks(range(-100, 101))
    assert set(found.values()) == set(range(10))
    ordered = [found[priority] for priority in sorted(found)]
    assert ordered == sorted(ordered, reverse=True)


def test_unknown_priority_gets_nearest_rank() -> None:
    known = ranks([10, 20, -3])
    assert [rank_of(priority, known) for priority in (10, 12, 99, 1, -99)] == [4, 4, 3, 5, 6]
