"""The commands rowq queue ..., health, maintain and after-failover."""

from typing import Any

import pytest

import rowq
from rowq.tools.console.exit_codes import ExitCode
from tests.cli.conftest import Run


def test_queue_commands_create_alter_pause_and_drop(run: Run, queue_name: str) -> None:
    assert run("queue", "create", queue_name).out == f"{queue_name}: created\n"
    assert run("queue", "create", queue_name, "--json").row["outcome"] == "exists"
    assert run("queue", "alter", queue_name, "--lease-seconds", 77, "--archive-days", 3).code == 0

    shown = run("queue", "show", queue_name, "--json").row
    assert (shown["lease_seconds"], shown["archive_days"], shown["is_paused"]) == (77, 3, False)

    assert run("queue", "pause", queue_name).code == 0
    assert run("queue", "show", queue_name, "--json").row["is_paused"] is True
    assert run("queue", "resume", queue_name).code == 0
    assert run("queue", "show", queue_name, "--json").row["is_paused"] is False

    assert run("queue", "drop", queue_name).out == f"{queue_name}: dropped\n"
    assert run("queue", "show", queue_name).code == ExitCode.REFUSED


SETTINGS = {
    "lease_seconds": 11,
    "max_attempts": 12,
    "backoff_base_seconds": 1.5,
    "backoff_factor": 3.0,
    "backoff_cap_seconds": 99.0,
    "backoff_jitter": 0.5,
    "archive_days": 7,
    "history_days": 30,
}
GROUPS = {"group_limit": 3, "group_after_dead": "hold", "group_pause_seconds": 0.5}
LIMITS = {"max_leased": 5, "rate_limit": 14, "rate_seconds": 1.5}


@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        pytest.param(GROUPS, marks=pytest.mark.requires("groups")),
        pytest.param(LIMITS, marks=pytest.mark.requires("limits")),
        pytest.param({"result_seconds": 1.5}, marks=pytest.mark.requires("results")),
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_queue_settings_are_created_and_altered(
    run: Run, queue: rowq.Queue, queue_name: str, settings: dict[str, Any]
) -> None:
    options = [
        word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", value)
    ]
    assert run("queue", "create", queue_name, *options).code == 0
    queue.create_queue(f"{queue_name}2")
    assert run("queue", "alter", f"{queue_name}2", *options).code == 0
    for name in (queue_name, f"{queue_name}2"):
        shown = run("queue", "show", name, "--json").row
        assert {setting: shown[setting] for setting in settings} == settings


def test_create_reports_other_settings_of_existing_queue(
    run: Run, queue: rowq.Queue, queue_name: str
) -> None:
    queue.create_queue(queue_name, max_attempts=3, lease_seconds=7)
    for form, out in ((), f"{queue_name}: exists\n"), (("--json",), None):
        done = run(
            *("queue", "create", queue_name, "--max-attempts", 7, "--lease-seconds", 7),
            *("--backoff-factor", 1.5, *form),
        )
        assert done.code == ExitCode.INCOMPLETE
        assert out is None or done.out == out
        assert done.err == (
            f"rowq: queue {queue_name} already exists with other settings: max_attempts is 3,"
            " not 7; backoff_factor is 2, not 1.5; use rowq queue alter\n"
        )
    assert queue.queue_stats(queue_name)[0].max_attempts == 3
    same = run("queue", "create", queue_name, "--max-attempts", 3)
    assert (same.code, same.out) == (0, f"{queue_name}: exists\n")


def test_create_refuses_setting_out_of_range(run: Run, queue_name: str) -> None:
    done = run("queue", "create", queue_name, "--lease-seconds", 0)
    assert done.code == ExitCode.REFUSED
    assert done.err.startswith("rowq: RQ711 invalid_argument: lease_seconds")


def test_list_shows_queues_and_counts(run: Run, queue: rowq.Queue, made: str) -> None:
    queue.enqueue_batch(made, [rowq.NewMessage(data=n) for n in range(3)])
    queue.enqueue(made, 4, delay_seconds=3600)
    (line,) = [line for line in run("queue", "list").out.splitlines() if made in line]
    assert line.split()[1:5] == ["no", "3", "1", "0"]
    (row,) = [row for row in run("queue", "list", "--json").rows if row["queue_name"] == made]
    assert (row["ready"], row["delayed"]) == (3, 1)


def test_drop_refuses_filled_queue_unless_forced(run: Run, queue: rowq.Queue, made: str) -> None:
    queue.enqueue(made, 1)
    refused = run("queue", "drop", made)
    assert refused.code == ExitCode.REFUSED
    assert refused.err.startswith("rowq: RQ704 ")
    assert run("queue", "drop", made, "--force").code == 0


def test_purge_deletes_waiting_messages(run: Run, queue: rowq.Queue, made: str) -> None:
    queue.enqueue_batch(made, [rowq.NewMessage(data=n) for n in range(5)])
    assert run("queue", "purge", made, "--max-messages", 2, "--json").row == {"removed": 2}
    assert run("queue", "purge", made, "--include-dead").out == "removed 3 messages\n"


@pytest.mark.parametrize("name", ["naïve [bold]Ü[/] 🐘", "'; drop schema rowq cascade; --", "a\\b"])
def test_hostile_queue_name_is_printed_unchanged(run: Run, queue_name: str, name: str) -> None:
    hostile = f"{name} {queue_name[-8:]}"
    assert run("queue", "create", hostile).out == f"{hostile}: created\n"
    assert hostile in run("queue", "list").out
    assert run("queue", "show", hostile, "--json").row["queue_name"] == hostile
    assert run("queue", "drop", hostile).code == 0


def test_health_fails_only_if_check_is_critical(run: Run) -> None:
    done = run("health", "--json")
    states = {row["status"] for row in done.rows}
    assert states <= {"ok", "warning", "critical"}
    assert done.code == (ExitCode.INCOMPLETE if "critical" in states else 0)
    assert "check name" in run("health").out


def test_maintain_prints_result_per_queue(run: Run, made: str) -> None:
    row = run("maintain", made, "--json").row
    assert (row["queue_name"], row["elected"]) == (made, True)


@pytest.mark.promise("P46")
def test_after_failover_prints_each_kind_of_number(run: Run, made: str) -> None:
    before = run("enqueue", made, "a", "--json").row["message_id"]
    moved = {row["name"]: row for row in run("after-failover", "--json").rows}
    assert list(moved) == ["claim", "message", "queue"]
    assert moved["message"]["is_now"] >= before + 10**9
    assert run("enqueue", made, "b", "--json").row["message_id"] > moved["message"]["is_now"]
