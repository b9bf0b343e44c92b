"""rowq.contrib.django: its migration, enqueue in atomic, and manage.py rowq_work."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import typer

from rowq.contrib.django.management.commands.rowq_work import Command
from rowq.contrib.django.worker import url_of
from rowq.tools.command.main import app
from rowq.tools.migrate.release import release_for
from tests.engines.base import TO_RUN, Server
from tests.static.sources import ROOT

PROGRAM = Path(__file__).with_name("django_program.py")
BACKENDS = {"postgres": "postgresql", "mysql": "mysql"}
# Options of `rowq work` for commands only, and options that manage.py has by itself.
OF_COMMANDS = {"--exec", "--shell", "--json", "--snooze"}


def settings_of(server: Server, url: str) -> dict[str, Any]:
    """Return Django's settings for the database of a URL."""
    if server.engine not in BACKENDS:
        pytest.skip(f"Django has no backend for {server.engine} here{TO_RUN}--engine postgres18")
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return {
        "ENGINE": f"django.db.backends.{BACKENDS[server.engine]}",
        "NAME": unquote(parts.path.strip("/")),
        "USER": query.get("user") or unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.get("unix_socket") or query.get("host") or parts.hostname or "",
        "PORT": query.get("port") or parts.port or "",
    }


@pytest.mark.slow("makes a project")
def test_project_installs_uses_and_removes_rowq(server: Server, empty_database: str) -> None:
    """On MariaDB with PyMySQL instead of mysqlclient."""
    database = settings_of(server, empty_database)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), json.dumps(database)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected, _, seen = done.stdout.rpartition("\n")
    life = json.loads(seen)
    assert expected == ("1 completed, 0 retried, 0 failed, 0 released, 0 stale")
    assert "RQ805" in life.pop("refused")
    assert life.pop("missing") == (
        "rowq is not installed in this database; install it with: python manage.py migrate rowq"
    )
    assert life == {
        "installed": 1,
        "ready": [{"id": 1, "total": "1.50"}],
        "left": 0,
        "handled": [[{"id": 1, "total": "1.50"}, 1]],
        "removed": 0,
        "again": 1,
    }


def test_django_has_a_migration_for_each_of_rowq() -> None:
    folder = ROOT / "python_client" / "rowq" / "contrib" / "django" / "migrations"
    numbers = sorted(int(path.name[:4]) for path in folder.glob("[0-9]*.py"))
    assert numbers == [one.number for one in release_for("postgres").migrations]


def test_command_has_the_options_of_rowq_work() -> None:
    command = typer.main.get_command(app)
    work: Any = command.commands["work"]  # type: ignore[attr-defined]
    parameters = [one for one in work.params if one.param_type_name == "option"]
    there = {name for one in parameters for name in (*one.opts, *one.secondary_opts)}
    here = Command().create_parser("manage.py", "rowq_work")._option_string_actions
    assert there - OF_COMMANDS <= set(here)
    assert {"--drain", "--workers", "--no-listen"} <= there


class Given:
    """A fake Django connection for url_of."""

    class Database:
        """The driver."""

    def __init__(self, driver: str, **settings: Any) -> None:
        self.Database.__name__ = driver
        self.settings_dict = {"OPTIONS": {}, **settings}

    def ensure_connection(self) -> None:
        """Connect."""

    def get_connection_params(self) -> dict[str, Any]:
        """Return Django's parameters for psycopg."""
        return self.settings_dict


Given.__module__ = "django.given"


def test_url_contains_the_settings() -> None:
    postgres = Given(
        "psycopg", dbname="shop", user="a@b", password="p/w?", host="/run", sslmode="require",
        cursor_factory=object(),
    )  # fmt: skip
    assert sorted(url_of(postgres).replace("?", "&").split("&")) == [
        "host=%2Frun",
        "postgresql://a%40b:p%2Fw%3F@/shop",
        "sslmode=require",
    ]
    options = {"charset": "utf8mb4", "ssl": {"ca": "/ca.pem"}}
    mysql = Given(
        "pymysql", NAME="shop", USER="u", PASSWORD="p", HOST="db", PORT="3307", OPTIONS=options
    )
    assert url_of(mysql) == "mysql://u:p@db:3307/shop?ssl_ca=%2Fca.pem"
