"""PostgreSQL for tests: at a URL, in a container, or as a private server."""

import shutil
import tempfile
from pathlib import Path

import psycopg
from testcontainers.community.postgres import PostgresContainer

from rowq.tools.local_postgres.directory import choose_binaries
from rowq.tools.local_postgres.server import LocalPostgres, LocalPostgresError
from tests.engines.base import Control, Unavailable
from tests.engines.docker import docker_answers, first_line, require_docker, run
from tests.engines.postgres.server import PostgresServer

# Tests kill processes, not machines: writes survive without fsync. An odd time zone reveals code
# that forgets time zones; written as a rule, it needs no time zone database.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "max_prepared_transactions": "10",
    "timezone": "<+0545>-05:45",
}


class PostgresProvider:
    """Starts PostgreSQL servers."""

    engine = "postgres"
    product = "postgres"
    versions: tuple[str, ...] = ("15", "16", "17", "18")
    is_large = False

    def at_hand(self) -> list[str]:
        return list(self.versions)

    def outlook(self) -> list[str]:
        images = ", ".join(f"postgres:{version}" for version in self.versions)
        docker = f"tried first, {images}" if docker_answers() else "skipped: no Docker daemon"
        lines = [f"postgres (docker): {docker}"]
        for version in reversed(self.versions):
            try:
                found = f"local binaries {choose_binaries(int(version))}"
            except LocalPostgresError:
                found = f"no local binaries; apt-get install postgresql-{version}"
            lines.append(f"postgres{version}: {found}")
        return lines

    def from_url(self, url: str) -> PostgresServer:
        try:
            return PostgresServer(url, "given URL,")
        except psycopg.Error as error:
            raise Unavailable(str(error)) from None

    def from_docker(self, version: str) -> PostgresServer:
        require_docker()
        words = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        container = PostgresContainer(f"postgres:{version}", driver=None, command=words)
        url, control = run(
            container,
            5432,
            url=lambda _address: str(container.get_connection_url()),
            accepts=_accepts,
            seconds=60,
        )
        return PostgresServer(url, f"docker image {container.image},", control)

    def from_local(self, version: str) -> PostgresServer:
        home = Path(tempfile.mkdtemp(prefix="rowq-test-"))
        local = LocalPostgres(home, int(version), SETTINGS)
        try:
            local.__enter__()
        except LocalPostgresError as error:
            shutil.rmtree(home)
            raise Unavailable(first_line(error)) from None

        def stop() -> None:
            local.__exit__(None, None, None)
            shutil.rmtree(home)

        control = Control(stop=stop, crash=local.kill, restart=local.restart, log=local.log)
        return PostgresServer(local.url, f"local binaries {local.origin}", control)


def _accepts(url: str) -> bool:
    """Return whether the server accepts a session."""
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


PROVIDERS = (PostgresProvider(),)
