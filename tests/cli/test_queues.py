"""Commands of queues: rowq queue ..., health and maintain."""

import pytest

import rowq
from rowq.tools.console.exit_codes import ExitCode
from tests.cli.conftest import Run


def test_a_queue_lives_from_create_to_drop(run: Run, queue_name: str) -> None:
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


def test_every_setting_reaches_the_queue(run: Run, queue_name: str) -> None:
    settings = {
        "lease_seconds": 11,
        "max_attempts": 12,
        "backoff_base_seconds": 1.5,
        "backoff_factor": 3.0,
        "backoff_cap_seconds": 99.0,
        "backoff_jitter": 0.5,
        "archive_days": 7,
    }
    options = [
        word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", value)
    ]
    assert run("queue", "create", queue_name, *options).code == 0
    shown = run("queue", "show", queue_name, "--json").row
    assert {name: shown[name] for name in settings} == settings


@pytest.mark.requires("limits")
def test_limits_reach_the_queue_and_0_takes_one_away(run: Run, queue_name: str) -> None:
    limits = ("--max-leased", 5, "--rate-limit", 14, "--rate-seconds", 1.5)
    assert run("queue", "create", queue_name, *limits).code == 0
    assert run("queue", "alter", queue_name, "--max-leased", 0, "--rate-limit", 15).code == 0
    shown = run("queue", "show", queue_name, "--json").row
    assert (shown["max_leased"], shown["rate_limit"], shown["rate_seconds"]) == (0, 15, 1.5)
    other = run("queue", "create", queue_name, "--rate-limit", 14)
    assert (other.code, "rate_limit is 15, asked for 14" in other.err) == (
        ExitCode.INCOMPLETE,
        True,
    )


def test_a_queue_that_exists_with_other_settings_is_told_which(
    run: Run, queue: rowq.Queue, queue_name: str
) -> None:
    """What was asked for is not swallowed; what was not asked for may be anything."""
    queue.create_queue(queue_name, max_attempts=3, lease_seconds=7)
    for form, out in ((), f"{queue_name}: exists\n"), (("--json",), None):
        done = run(
            *("queue", "create", queue_name, "--max-attempts", 7, "--lease-seconds", 7),
            *("--backoff-factor", 1.5, *form),
        )
        assert done.code == ExitCode.INCOMPLETE
        assert out is None or done.out == out
        assert done.err == (
            f"rowq: {queue_name} exists, and its settings are as they were: max_attempts is 3,"
            " asked for 7; backoff_factor is 2, asked for 1.5; rowq queue alter changes them\n"
        )
    assert queue.queue_stats(queue_name)[0].max_attempts == 3
    same = run("queue", "create", queue_name, "--max-attempts", 3)
    assert (same.code, same.out) == (0, f"{queue_name}: exists\n")


@pytest.mark.requires("groups")
def test_every_setting_of_groups_reaches_the_queue(run: Run, made: str) -> None:
    settings = {"group_limit": 3, "group_after_dead": "hold", "group_pause_seconds": 0.5}
    options = [
        word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", value)
    ]
    assert run("queue", "alter", made, *options).code == 0
    shown = run("queue", "show", made, "--json").row
    assert {name: shown[name] for name in settings} == settings
    done = run("queue", "create", made, "--group-after-dead", "continue")
    assert "group_after_dead is hold, asked for continue" in done.err


def test_a_setting_out_of_range_is_refused_by_number(run: Run, queue_name: str) -> None:
    done = run("queue", "create", queue_name, "--lease-seconds", 0)
    assert done.code == ExitCode.REFUSED
    assert done.err.startswith("rowq: RQ711 invalid_argument: lease_seconds")


def test_the_list_shows_every_queue_and_its_counts(run: Run, queue: rowq.Queue, made: str) -> None:
    queue.enqueue_batch(made, [rowq.NewMessage(data=n) for n in range(3)])
    queue.enqueue(made, 4, delay_seconds=3600)
    (line,) = [line for line in run("queue", "list").out.splitlines() if made in line]
    assert line.split()[1:5] == ["no", "3", "1", "0"]
    (row,) = [row for row in run("queue", "list", "--json").rows if row["queue_name"] == made]
    assert (row["ready"], row["delayed"]) == (3, 1)


def test_drop_refuses_a_queue_with_messages_unless_forced(
    run: Run, queue: rowq.Queue, made: str
) -> None:
    queue.enqueue(made, 1)
    refused = run("queue", "drop", made)
    assert refused.code == ExitCode.REFUSED
    assert refused.err.startswith("rowq: RQ704 ")
    assert run("queue", "drop", made, "--force").code == 0


def test_purge_removes_what_waits(run: Run, queue: rowq.Queue, made: str) -> None:
    queue.enqueue_batch(made, [rowq.NewMessage(data=n) for n in range(5)])
    assert run("queue", "purge", made, "--max-messages", 2, "--json").row == {"removed": 2}
    assert run("queue", "purge", made, "--include-dead").out == "removed 3 messages\n"


@pytest.mark.parametrize("name", ["naïve [bold]Ü[/] 🐘", "'; drop schema rowq cascade; --", "a\\b"])
def test_a_hostile_queue_name_is_shown_as_it_is(run: Run, queue_name: str, name: str) -> None:
    hostile = f"{name} {queue_name[-8:]}"
    assert run("queue", "create", hostile).out == f"{hostile}: created\n"
    assert hostile in run("queue", "list").out
    assert run("queue", "show", hostile, "--json").row["queue_name"] == hostile
    assert run("queue", "drop", hostile).code == 0


def test_health_prints_a_row_per_check_and_fails_only_when_one_is_critical(run: Run) -> None:
    done = run("health", "--json")
    states = {row["status"] for row in done.rows}
    assert states <= {"ok", "warning", "critical"}
    assert done.code == (ExitCode.INCOMPLETE if "critical" in states else 0)
    assert "check name" in run("health").out


def test_maintain_tells_what_it_did_for_a_queue(run: Run, made: str) -> None:
    row = run("maintain", made, "--json").row
    assert (row["queue_name"], row["elected"]) == (made, True)
