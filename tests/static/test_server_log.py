"""A test that fails shows what its private servers have written since it began; no server here."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.engines import plugin
from tests.engines.logs import LINES, ServerLogs


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> ServerLogs:
    """Return logs that the plugin reads instead of those of the running servers."""
    own = ServerLogs()
    monkeypatch.setattr(plugin, "LOGS", own)
    return own


def write(log: Path, *lines: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def sections(*, failed: bool) -> list[tuple[str, str]]:
    """Return what the plugin adds to the report of a test."""
    item: Any = SimpleNamespace(funcargs={}, path=Path(__file__))
    call: Any = SimpleNamespace(start=0.0)
    report: Any = SimpleNamespace(failed=failed, sections=[])
    made = plugin.pytest_runtest_makereport(item, call)
    next(made)
    with pytest.raises(StopIteration) as stopped:
        made.send(report)
    found: list[tuple[str, str]] = stopped.value.value.sections
    return found


def test_a_failed_test_shows_what_was_written_since_it_began(
    logs: ServerLogs, tmp_path: Path
) -> None:
    write(tmp_path / "log", "before")
    logs.add(tmp_path / "log", "mariadb11.8")
    plugin.pytest_runtest_setup()
    write(tmp_path / "log", "Index for table 'ready' is corrupt", "aborting")
    ((title, text),) = sections(failed=True)
    assert "mariadb11.8" in title
    assert text == "Index for table 'ready' is corrupt\naborting"


def test_a_passed_test_shows_nothing(logs: ServerLogs, tmp_path: Path) -> None:
    logs.add(tmp_path / "log", "postgres18")
    write(tmp_path / "log", "checkpoint")
    assert sections(failed=False) == []


def test_the_log_of_a_server_that_the_test_has_started_is_shown_from_its_beginning(
    logs: ServerLogs, tmp_path: Path
) -> None:
    plugin.pytest_runtest_setup()
    write(tmp_path / "log", "starting")
    logs.add(tmp_path / "log", "postgres18")
    assert [text for _, text in sections(failed=True)] == ["starting"]


def test_only_the_last_lines_are_shown(logs: ServerLogs, tmp_path: Path) -> None:
    logs.add(tmp_path / "log", "postgres18")
    write(tmp_path / "log", *(f"line {number}" for number in range(LINES + 5)))
    ((_, text),) = sections(failed=True)
    assert text.splitlines()[0] == "line 5"
    assert len(text.splitlines()) == LINES


def test_a_server_that_wrote_nothing_or_is_gone_hides_no_failure(
    logs: ServerLogs, tmp_path: Path
) -> None:
    write(tmp_path / "quiet", "before")
    logs.add(tmp_path / "quiet", "postgres18")
    logs.add(tmp_path / "gone", "mariadb10.11")
    plugin.pytest_runtest_setup()
    assert sections(failed=True) == []
