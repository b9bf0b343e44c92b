"""Puts rowq into an empty database."""

from __future__ import annotations

import shutil
import subprocess

import rowq.engines
from rowq.engines.mysql_url import connection_parameters
from rowq.migrate import migrate
from rowq.resources import migrations_directory, sql_directory


def install(url: str) -> None:
    """Migrate the database; from the source files where an engine has no migrations yet."""
    engine = rowq.engines.engine_for_url(url).name
    if (migrations_directory() / engine).exists():
        migrate(url)
        return
    parts = connection_parameters(url)
    client = shutil.which("mariadb") or shutil.which("mysql")
    assert client is not None
    words = [f"--{name}={parts[name]}" for name in ("host", "port", "user", "password")]
    folder = sql_directory() / engine
    done = subprocess.run(
        [client, "--no-defaults", *words, "--batch"],
        input=(folder / "install.sql").read_text(encoding="utf-8"),
        cwd=folder,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
