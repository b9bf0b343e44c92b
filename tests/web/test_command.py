"""The command rowq web."""

import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, run, run_without_database
from tests.cli.working import PROGRAM, environment
from tests.engines.base import wait_until
from tests.metrics.reading import get

__all__ = ["run", "run_without_database"]

NOWHERE = "postgresql://nobody:xyzzySECRETxyzzy@127.0.0.1:1/nowhere"


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "192.0.2.1", "queues.example"],  # noqa: S104 - refused
)
def test_other_host_requires_login(run_without_database: Run, host: str) -> None:
    done = run_without_database("web", "--host", host, url=NOWHERE)
    assert done.code == 2
    assert "requires a login" in words_of(done.err)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--base-path", "rowq"], "--base-path must be a path"),
        (["--base-path", "/a b"], "--base-path must be a path"),
        (["--url", "a=postgresql://x/y", "--url", "postgresql://x/y"], "with different names"),
        (["--url", "a=postgresql://x/y", "--url", "a=postgresql://x/z"], "with different names"),
        (["--url", "a/b=postgresql://x/y"], "postgresql://"),
        (["--proxy", "10.0.0.2"], "--proxy requires"),
        (["--trust-proxy-user", "X", "--proxy", "anywhere"], "an address or a network"),
        (["--trust-proxy-user", "X", "--host", "0.0.0.0"], "--proxy ADDRESS"),  # noqa: S104
        (["--password-file", "/nowhere", "--trust-proxy-user", "X"], "mutually exclusive"),
        (["--set-password", "anna"], "requires --password-file"),
    ],
)
def test_web_refuses_invalid_options(
    run_without_database: Run, options: list[str], words: str
) -> None:
    url = None if "--url" in options else NOWHERE
    done = run_without_database("web", *options, url=url)
    assert done.code == 2, done.err
    assert words in words_of(done.err)


def words_of(text: str) -> str:
    """Return a text without typer's frame and line ends."""
    return " ".join(text.replace("│", " ").split())


def test_web_refuses_invalid_password_file(run_without_database: Run, tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    missing = run_without_database("web", "--password-file", file, url=NOWHERE)
    assert (missing.code, str(file) in missing.err) == (6, True)
    file.write_text("anna:xyzzySECRETxyzzy\n")
    plain = run_without_database("web", "--password-file", file, url=NOWHERE)
    assert (plain.code, "line 1" in plain.err, "SECRET" in plain.err) == (6, True, False)
    unknown = run_without_database("web", url="nothing://here")
    assert unknown.code == 2


@pytest.mark.slow("waits for time limits")
def test_web_serves_with_password_until_signal(database_url: str, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    command = [PROGRAM, "web", "--password-file", str(file)]
    given: dict[str, Any] = {"text": True, "env": environment(database_url)}
    empty = run("web", "--password-file", file, "--set-password", "anna", given="\n")
    assert (empty.code, file.exists()) == (5, False)
    done = run("web", "--password-file", file, "--set-password", "anna", given="right\n")
    assert done.code == 0, done.err
    assert "right" not in done.out + done.err + file.read_text()
    options = ["--port", "0", "--base-path", "/rowq", "--title", "prod"]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, **given) as web:
        assert web.stderr
        try:
            line = web.stderr.readline()
            address = re.match(r"serving the queues at (http://127\.0\.0\.1:\d+/rowq/);", line)
            assert address, line
            assert get(address[1])[0] == 401
            status, page = get(address[1], Authorization="Basic YW5uYTpyaWdodA==")
            assert status == 200
            assert "prod</title>" in page
            assert 'src="/rowq/static/rowq.js"' in page
            web.send_signal(signal.SIGTERM)
            wait_until(lambda: web.poll() is not None, "it ends", seconds=30)
        finally:
            web.kill()
        assert web.returncode == 0, web.stderr.read()
