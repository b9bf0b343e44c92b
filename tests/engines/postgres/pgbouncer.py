"""PgBouncer: sessions that change with every transaction."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.engines.base import free_port, wait_until

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
TO_RUN = "no pgbouncer; to run it: apt-get install pgbouncer"


@contextmanager
def pooled(database_url: str, sessions: int, clients: int = 100) -> Iterator[tuple[str, int]]:
    """Yield the URL of a database through a pool of sessions, and the pooler's pid."""
    target_of = conninfo_to_dict(database_url)
    target = " ".join(
        f"{name}={target_of[name]}"
        for name in ("host", "port", "dbname", "user", "password")
        if target_of.get(name)
    )
    port = free_port()
    user = _account(Path(str(target_of["host"])))
    with tempfile.TemporaryDirectory() as room:
        settings = Path(room, "pgbouncer.ini")
        settings.write_text(
            _SETTINGS.format(target=target, port=port, sessions=sessions, clients=clients)
        )
        for path in (Path(room), settings):
            os.chown(path, user, -1)
        with _running([str(PROGRAM), "-q", str(settings)], user) as pid:
            url = f"postgresql://user@127.0.0.1:{port}/pooled"
            wait_until(lambda: _answers(url), "pgbouncer answers")
            yield url, pid


_SETTINGS = """
[databases]
pooled = {target}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = {clients}
"""


def _account(host: Path) -> int:
    """Return a user id that may open the server's socket: PgBouncer refuses to run as root."""
    return host.stat().st_uid if host.is_absolute() else os.getuid()


@contextmanager
def _running(command: list[str], user: int) -> Iterator[int]:
    """Run the pooler as a user; as root, in a user namespace."""
    if user == 0:
        command = ["unshare", "--user", "--map-user=1000", *command]
    as_user: int | None = user if os.getuid() == 0 and user else None
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, user=as_user) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
