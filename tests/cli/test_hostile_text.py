"""Text of other accounts is escaped in every command and format."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rowq
from rowq.tools.terminal import LineFormatter
from tests.cli.conftest import Run
from tests.cli.working import ROOT

# OSC and CSI as C0 and C1, delete, direction overrides and isolates, zero-width characters.
HOSTILE = (
    "a\x1b]0;owned\x07\x7f\x9b31m\x9d0;owned\x9c\u202e\u2066\u200b\u200d\ufeff\u00ad\u034f\ufe0f"
    "\U000e0041\u3164z"
)
SHOWN = re.compile(r"[^\x00-\x1f\x7f-\x9f\u00ad\u034f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
                   r"\u3164\ufe0f\ufeff\U000e0041]*")  # fmt: skip
PACKAGE = ROOT / "python_client" / "rowq"
CLI = [PACKAGE / folder for folder in ("tools/command", "tools/console", "contrib/imports")]


def is_harmless(text: str) -> bool:
    """Return whether no line of a text has control or invisible characters."""
    return all(map(SHOWN.fullmatch, text.split("\n")))


@pytest.fixture
def hostile(queue: rowq.Queue, queue_name: str) -> Iterator[str]:
    """Create a queue with messages in all states, whose texts are hostile."""
    queue.create_queue(queue_name, max_attempts=1, result_seconds=60, history_days=1)
    key = re.sub(r"[\x00-\x1f\x7f-\x9f]", "", HOSTILE)
    for part in ("dead", "leased", "ready", "later"):
        queue.enqueue(
            queue_name,
            text=HOSTILE,
            message_type=HOSTILE,
            headers={HOSTILE: HOSTILE},
            dedup_key=f"{part}{key}",
            group_key=None if part == "later" else f"{part}{key}",
            delay_seconds=1000 if part == "later" else None,
        )
    (dead,) = queue.dequeue_fast(queue_name, worker_name=HOSTILE)
    queue.fail_now(queue_name, dead.claim_id, error=f"boom\n{HOSTILE}")
    queue.dequeue_fast(queue_name, worker_name=HOSTILE)
    queue.create_schedule(queue_name, f"s{key}", cron="0 3 * * *", text=HOSTILE, group_key=key)
    yield queue_name
    queue.drop_schedule(queue_name, f"s{key}")


def test_commands_escape_control_characters(run: Run, queue: rowq.Queue, hostile: str) -> None:
    ids = [message.message_id for message in queue.list_dead(hostile)]
    ids += [message.message_id for message in queue.peek(hostile)]
    commands: list[tuple[object, ...]] = [
        ("peek", hostile),
        ("claims", hostile),
        ("delayed", hostile),
        ("dead", "list", hostile),
        ("stats", hostile),
        ("schedule", "list", hostile),
        ("queue", "show", hostile),
        ("top", "--queue", hostile, "--once"),
        *((command, hostile, number) for number in ids for command in ("show", "result")),
        ("dequeue", hostile),
    ]
    for command in commands:
        for json_option in ((), ("--json",)) if command[0] != "top" else ((),):
            done = run(*command, *json_option)
            assert is_harmless(done.out), command
            assert is_harmless(done.err), command


def test_json_preserves_hostile_text(run: Run, hostile: str) -> None:
    shown = run("peek", hostile).rows[0]
    assert shown["body"] == shown["message_type"] == HOSTILE
    assert shown["headers"] == {HOSTILE: HOSTILE}


def test_errors_about_arguments_are_escaped(run: Run) -> None:
    done = run("enqueue", "orders", "{}", "--run-at", HOSTILE)
    assert done.code == 2
    assert is_harmless(done.err)


def test_log_lines_are_escaped() -> None:
    record = logging.LogRecord("rowq", logging.ERROR, "", 0, "%s\n\t%s", (HOSTILE, "b"), None)
    text = LineFormatter("%(levelname)s %(message)s").format(record)
    assert text.startswith("ERROR a\\x1b]0;owned")
    assert text.endswith("\n\tb")
    assert is_harmless(text.replace("\t", ""))


@pytest.mark.parametrize(
    "path",
    [path for folder in CLI for path in sorted(folder.rglob("*.py"))],
    ids=lambda path: path.relative_to(PACKAGE).with_suffix("").as_posix(),
)
def test_commands_write_only_through_escaping_functions(path: Path) -> None:
    raw = re.compile(r"\b(?:typer\.echo|secho|(?<!\.)print|basicConfig)\(")
    found = raw.findall(path.read_text(encoding="utf-8"))
    assert found == (["typer.echo("] if path.stem == "streams" else [])
