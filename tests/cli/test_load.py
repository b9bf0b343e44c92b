"""rowq load: rows become messages, and an error leaves no partial batch."""

import json
import lzma
import re
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from unittest.mock import create_autospec

import pytest

import rowq
from rowq.contract import load_contract
from rowq.session import Session
from rowq.tools.console.database import require_queue
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.console.input_lines import BadLine, Lines, csv_bodies
from rowq.tools.demo.ledger import DATA
from tests.cli.conftest import Run


def bodies(queue: rowq.Queue, queue_name: str) -> list[str | None]:
    """Return the bodies of ready messages, in order."""
    return [message.body for message in queue.peek(queue_name, max_messages=1000)]


def write(path: Path, content: str | bytes) -> Path:
    """Write a file and return its path."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_csv_row_becomes_object_of_strings(
    run: Run, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    text = '\ufeffid,name,note\r\n1,Zoë,"a ""b"",\nc"\r\n\r\n02,,🐘\r\n'
    done = run("load", made, write(tmp_path / "a.csv", text), "--json")
    assert (done.code, done.row["enqueued"]) == (0, 2)
    assert [json.loads(body or "") for body in bodies(queue, made)] == [
        {"id": "1", "name": "Zoë", "note": 'a "b",\nc'},
        {"id": "02", "name": "", "note": "🐘"},
    ]


def test_json_line_is_stored_unchanged(
    run: Run, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    lines = ['{"a": 1.50, "b": "\\u00e4"}', "[]", '"text"', "12345678901234567890.0", "null"]
    file = write(tmp_path / "a.jsonl", "\n".join([*lines, "", ""]))
    assert run("load", made, file).code == 0
    assert run("load", made, "-", "--format", "jsonl", given="1\n2\n").code == 0
    assert bodies(queue, made) == [*lines, "1", "2"]


def test_load_options_apply_to_every_message(
    run: Run, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "a.jsonl", "1\n2\n")
    options = ("--priority", 1, "--type", "t", "--header", "a=b", "--max-attempts", 3)
    assert run("load", made, file, *options).code == 0
    messages = queue.peek(made, max_messages=2)
    assert len(messages) == 2
    for message in messages:
        assert (message.priority, message.message_type) == (1, "t")
        assert message.headers == {"a": "b"}
        found = queue.get_message(made, message.message_id)
        assert found is not None
        assert found.max_attempts == 3


def test_load_delays_messages(run: Run, queue: rowq.Queue, made: str, tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", "1\n2\n")
    next_year = datetime.now(UTC).year + 1
    for option in (("--delay", 3600), ("--run-at", f"{next_year}-01-31T18:00")):
        assert run("load", made, file, *option).code == 0
    stats = queue.queue_stats(made)[0]
    assert (stats.ready, stats.delayed) == (0, 4)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("orders.txt",),
        ("-",),
        ("x.csv", "y.csv"),
        ("x.csv", "--dedup-key", "k"),
        ("x.csv", "--no-body"),
        ("x.csv", "--batch-size", 0),
        ("x.csv", "--batch-size", 10_001),
        ("x.csv", "--from-line", 0),
        ("x.csv", "--header", "no_equals_sign"),
        ("x.csv", "--run-at", "tomorrow"),
    ],
    ids=str,
)
def test_invalid_arguments_are_wrong_usage(
    run: Run, made: str, arguments: tuple[object, ...]
) -> None:
    assert run("load", made, *arguments).code == ExitCode.USAGE


def test_missing_file_is_reported_on_one_line(run: Run, made: str) -> None:
    done = run("load", made, "missing.csv")
    assert done.code == ExitCode.FAILED
    assert "missing.csv" in done.err
    assert done.err.count("\n") == 1


BAD_CSV = {
    "too few columns": (b"7", "1 columns, but the header has 2"),
    "too many columns": (b"7,x,y", "3 columns"),
    "not UTF-8": (b"7,\xff", "not UTF-8"),
    "NUL": (b"7,\0", "NUL"),
    "text after a quote": (b'7,"x"y', "not CSV"),
    "an unterminated quote": (b'7,"x', "not CSV"),
}


@pytest.mark.parametrize("fault", BAD_CSV)
def test_load_names_bad_csv_line_and_can_continue(
    run: Run, queue: rowq.Queue, made: str, tmp_path: Path, fault: str
) -> None:
    bad, why = BAD_CSV[fault]
    rows = [f"{n},x".encode() for n in range(1, 11)]
    file = write(tmp_path / "a.csv", b"\n".join([b"id,v", *rows[:6], bad, *rows[7:]]) + b"\n")

    done = run("load", made, file, "--batch-size", 3)
    assert done.code == ExitCode.BAD_INPUT
    assert f"{file}, line 8: " in done.err
    assert why in done.err
    assert "6 messages were enqueued; continue with --from-line 8" in done.err
    assert len(bodies(queue, made)) == 6

    write(file, b"\n".join([b"id,v", *rows]) + b"\n")
    assert run("load", made, file, "--batch-size", 3, "--from-line", 8).code == 0
    ids = [json.loads(body or "")["id"] for body in bodies(queue, made)]
    assert ids == [str(n) for n in range(1, 11)]


@pytest.mark.parametrize("bad", [b"{", b"{'a': 1}", b"NaN", b"1 2", b"\xff", b"[" * 100_000])
def test_bad_json_line_excludes_its_batch(
    run: Run, queue: rowq.Queue, made: str, tmp_path: Path, bad: bytes
) -> None:
    file = write(tmp_path / "a.jsonl", b"1\n2\n\n3\n4\n" + bad + b"\n6\n7\n")
    done = run("load", made, file, "--batch-size", 3)
    assert done.code == ExitCode.BAD_INPUT
    assert f"{file}, line 6: " in done.err
    assert "continue with --from-line 5\n" in done.err
    assert done.err.count("\n") == 1
    assert bodies(queue, made) == ["1", "2", "3"]

    write(file, b"1\n2\n\n3\n4\n5\n6\n7\n")
    assert run("load", made, file, "--from-line", 5).code == 0
    assert bodies(queue, made) == ["1", "2", "3", "4", "5", "6", "7"]


@pytest.mark.parametrize("header", ["", "a,a", "a,", '"a'])
def test_load_refuses_bad_header(
    run: Run, queue: rowq.Queue, made: str, tmp_path: Path, header: str
) -> None:
    done = run("load", made, write(tmp_path / "a.csv", header and f"{header}\n1,2\n"))
    assert done.code == ExitCode.BAD_INPUT
    assert "line 1: " in done.err
    assert "No messages were enqueued." in done.err
    assert bodies(queue, made) == []


def test_refused_load_names_error_number_and_lines(
    run: Run, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "a.jsonl", "1\n2\n3\n")
    done = run("load", made, file, "--batch-size", 2, "--priority", 11)
    assert done.code == ExitCode.REFUSED
    assert done.err.startswith("rowq: RQ711 ")
    assert f"(lines 1 to 2 of {file}). No messages were enqueued." in done.err
    assert bodies(queue, made) == []


def test_load_refuses_unknown_queue_before_reading(
    run: Run, queue_name: str, tmp_path: Path
) -> None:
    done = run("load", queue_name, write(tmp_path / "a.csv", b"\xff"))
    assert done.code == ExitCode.REFUSED
    assert done.err.startswith("rowq: RQ701 ")


@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_role_can_check_that_queue_exists(
    role: Literal["producer", "consumer"],
) -> None:
    session = create_autospec(Session, instance=True)
    session.call.return_value = []
    require_queue(rowq.Queue(session), "orders", role)
    (asked,) = session.call.call_args_list
    assert role in load_contract().routines[asked.args[0]].roles


def test_line_number_counts_lines_inside_quotes(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", 'a,b\n1,"x\ny\nz"\n2\n')
    with file.open("rb") as opened, pytest.raises(BadLine) as bad:
        list(csv_bodies(Lines(opened), 1))
    assert bad.value.line == 5


@pytest.mark.slow("70,000 rows")
def test_load_uses_70_calls_for_70000_rows(
    run: Run, queue: rowq.Queue, made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "orders.csv", lzma.decompress(DATA.read_bytes()))
    enqueue_batch, sizes = rowq.Queue.enqueue_batch, list[int]()

    def counted(
        queue: rowq.Queue, name: str, messages: list[rowq.NewMessage]
    ) -> list[rowq.BatchEnqueued]:
        sizes.append(len(messages))
        return enqueue_batch(queue, name, messages)

    monkeypatch.setattr(rowq.Queue, "enqueue_batch", counted)
    done = run("load", made, file)
    assert re.match(r"69,659 messages enqueued in ", done.out)
    assert queue.queue_stats(made)[0].ready == 69_659
    assert [size for size in sizes if size] == [1000] * 69 + [659]
    queue.drop_queue(made, force=True)


def test_large_file_is_read_in_constant_memory(tmp_path: Path) -> None:
    file = tmp_path / "big.csv"
    with file.open("w") as out:
        out.write("id,text\n")
        out.writelines(f"{n},{'x' * 200}\n" for n in range(30_000))
    tracemalloc.start()
    with file.open("rb") as opened:
        count = sum(1 for _ in csv_bodies(Lines(opened), 1))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 30_000
    assert peak < 2_000_000


@pytest.mark.parametrize(("mark", "name"), [(";", "';'"), ("\t", "tab")])
def test_load_suggests_option_for_other_delimiter(
    run: Run, queue: rowq.Queue, made: str, tmp_path: Path, mark: str, name: str
) -> None:
    file = write(tmp_path / "a.csv", f"a{mark}b\n1{mark}2,5\n")
    done = run("load", made, file)
    assert done.code == ExitCode.BAD_INPUT
    assert f"line 1: the header has one column that contains {name}" in done.err
    assert f"--delimiter {name}" in done.err
    assert "No messages were enqueued." in done.err
    assert queue.queue_stats(made)[0].ready == 0
    assert run("load", made, file, "--delimiter", "tab" if mark == "\t" else mark).code == 0
    assert [message.data for message in queue.peek(made, max_messages=9)] == [
        {"a": "1", "b": "2,5"}
    ]


def test_single_column_header_may_contain_other_delimiter(
    run: Run, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "a.csv", "a;b\n1\n")
    assert run("load", made, file, "--delimiter", ",").code == 0
    assert queue.peek(made)[0].data == {"a;b": "1"}


@pytest.mark.parametrize(
    ("name", "delimiter"),
    [("a.csv", ""), ("a.csv", ";;"), ("a.csv", '"'), ("a.csv", "\n"), ("a.jsonl", ";")],
)
def test_load_refuses_invalid_delimiter(
    run: Run, made: str, tmp_path: Path, name: str, delimiter: str
) -> None:
    file = write(tmp_path / name, "1\n")
    assert run("load", made, file, "--delimiter", delimiter).code == ExitCode.USAGE
