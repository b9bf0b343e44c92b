"""rowq schedule ..."""

import io
import re
from datetime import UTC, datetime

import pytest
from rich.console import Console

import rowq
from rowq.tools.command.schedules import _row
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.console.output import table
from tests.cli.conftest import Run

HOURLY = ("--cron", "0 * * * *")


def test_schedule_commands_create_pause_run_and_drop(
    run: Run, queue: rowq.Queue, made: str
) -> None:
    assert run("schedule", "list", made).out == "no schedules\n"
    created = run("schedule", "create", made, "nightly", '{"id": 1}', *HOURLY).out
    assert created.startswith("nightly: created, next run 2")
    row = run("schedule", "list", made, "--json").row
    assert (row["schedule_name"], row["cron"], row["is_paused"]) == ("nightly", "0 * * * *", False)
    assert "nightly" in run("schedule", "list").out

    assert run("schedule", "pause", made, "nightly").out == "nightly: altered, does not run\n"
    resumed = run("schedule", "resume", made, "nightly", "--json").row
    assert resumed["next_run_at"] == row["next_run_at"]

    sent = run("schedule", "run", made, "nightly").out
    (message,) = queue.dequeue_fast(made)
    assert sent == f"enqueued message {message.message_id}\n"
    assert message.data == {"id": 1}
    assert message.headers is not None
    assert message.headers["schedule"] == "nightly"

    assert run("schedule", "drop", made, "nightly").out == "nightly: dropped\n"
    assert run("schedule", "drop", made, "nightly").code == ExitCode.REFUSED


def test_schedule_counts_from_the_end(run: Run, queue: rowq.Queue, made: str) -> None:
    assert run("schedule", "create", made, "poll", "--every", 60, "--from-end").code == 0
    assert "every 60 s from the end" in run("schedule", "list", made).out
    (row,) = queue.list_schedules(made)
    assert (row.counts_from, row.overlap) == ("end", False)
    assert run("schedule", "alter", made, "poll", "--from-start").code == 0
    assert queue.list_schedules(made)[0].counts_from == "start"


def test_options_reach_schedule(run: Run, queue: rowq.Queue, made: str) -> None:
    options: list[object] = [
        *("--every", 90, "--zone", "UTC", "--type", "kind", "--header", "a=b", "--priority", 2),
        *("--max-attempts", 3, "--group", "g", "--missed", "all", "--no-overlap"),
        *("--starts", "2030-01-01T00:00+00:00", "--ends", "2031-01-01T00:00+00:00"),
    ]
    assert run("schedule", "create", made, "often", *options).code == 0
    (row,) = queue.list_schedules(made)
    assert (row.interval_seconds, row.time_zone, row.message_type) == (90, "UTC", "kind")
    assert (row.priority, row.max_attempts, row.group_key) == (2, 3, "g")
    assert (row.missed, row.overlap) == ("all", False)
    assert row.starts_at == datetime.fromisoformat("2030-01-01T00:00+00:00") == row.next_run_at
    assert row.ends_at == datetime.fromisoformat("2031-01-01T00:00+00:00")

    run("schedule", "run", made, "often")
    (message,) = queue.dequeue_fast(made)
    assert message.headers is not None
    assert message.headers["a"] == "b"
    assert run("schedule", "run", made, "often").out.startswith("duplicate of message ")

    assert run("schedule", "alter", made, "often", "text", "--overlap", *HOURLY).code == 0
    (row,) = queue.list_schedules(made)
    assert (row.cron, row.interval_seconds, row.overlap, row.missed) == (
        "0 * * * *", None, True, "all",
    )  # fmt: skip


def test_create_keeps_existing_schedule(run: Run, queue: rowq.Queue, made: str) -> None:
    assert run("schedule", "create", made, "nightly", *HOURLY).code == 0
    again = run("schedule", "create", made, "nightly", "--every", 5)
    assert again.code == ExitCode.INCOMPLETE
    assert "rowq schedule alter" in again.err
    assert [row.cron for row in queue.list_schedules(made)] == ["0 * * * *"]


def test_next_prints_ticks_in_time_zone(run: Run) -> None:
    asked = ("0 3 * * sun", "--zone", "Europe/Berlin", "--count", 2)
    shown = run("schedule", "next", *asked, "--after", "2026-03-22T12:00+00:00").out
    assert shown == "2026-03-29T03:00:00+02:00  Sun\n2026-04-05T03:00:00+02:00  Sun\n"
    row = run("schedule", "next", "--every", 60, "--after", "2026-01-01T00:00Z", "--count", 1)
    assert row.out == "2026-01-01T00:01:00+00:00  Thu\n"
    row = run("schedule", "next", "@daily", "--after", "2026-01-01T00:00Z", "--count", 1, "--json")
    assert row.row == {"tick": "2026-01-02T00:00:00+00:00"}


def test_schedule_times_are_in_its_time_zone(run: Run, queue: rowq.Queue, made: str) -> None:
    times = ("--cron", "0 3 1 7 *", "--zone", "Europe/Berlin")
    assert "-07-01T03:00:00+02:00\n" in run("schedule", "create", made, "yearly", *times).out
    again = run("schedule", "create", made, "yearly", "--every", 5).out
    assert again.startswith("yearly: exists, next run 2")
    assert again.endswith("-07-01T03:00:00+02:00\n")
    altered = run("schedule", "alter", made, "yearly", "--cron", "0 4 1 7 *").out
    assert altered.endswith("-07-01T04:00:00+02:00\n")
    assert "-07-01 04:00:00 CEST" in run("schedule", "list", made).out
    row = run("schedule", "list", made, "--json").row
    assert datetime.fromisoformat(row["next_run_at"]) == queue.list_schedules(made)[0].next_run_at
    assert row["next_run_at"].endswith("-07-01T02:00:00+00:00")


def test_schedule_table_cuts_nothing_at_any_width() -> None:
    row = _row(
        rowq.Schedule(
            queue_name="invoices_of_customers",
            schedule_name="end_of_quarter_statement",
            cron="30 3 1 1,4,7,10 mon-fri",
            interval_seconds=None,
            time_zone="America/Argentina/Buenos_Aires",
            is_paused=False,
            next_run_at=datetime(2026, 12, 1, 6, 30, tzinfo=UTC),
            last_run_at=datetime(2026, 11, 1, 6, 30, tzinfo=UTC),
            last_message_id=1,
            last_error="a long error about something that has happened at the last tick",
            missed="once",
            overlap=True,
            starts_at=datetime(2026, 1, 1, tzinfo=UTC),
            ends_at=None,
            message_type=None,
            priority=5,
            max_attempts=None,
            group_key=None,
            counts_from="start",
        )
    )
    for width in (80, 110, 400):
        written = io.StringIO()
        Console(file=written, width=width).print(table([row]))
        assert "\u2026" not in written.getvalue()
        shown = re.sub(r"[^A-Za-z0-9]", "", written.getvalue())
        assert sorted(re.sub(r"[^A-Za-z0-9]", "", "".join(map(str, (*row, *row.values()))))) == (
            sorted(shown)
        )
    assert row["next_run"] == "2026-12-01 03:30:00 -03"


@pytest.mark.parametrize(
    "wrong", [("61 * * * *",), ("* * * * *", "--zone", "Nowhere/Here"), ("* * * * *", "--every", 5)]
)
def test_next_refuses_invalid_times(run: Run, wrong: tuple[object, ...]) -> None:
    assert run("schedule", "next", *wrong).code == ExitCode.REFUSED
