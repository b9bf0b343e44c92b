"""Java, with Debian's JDBC drivers, which do not support unix sockets."""

import os
import subprocess
from pathlib import Path
from urllib.parse import unquote, urlencode, urlsplit

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.client.proxy import Relay
from tests.engines.base import TO_RUN, Server
from tests.examples.programs import EXAMPLES, Programs, need

ENGINES = ("postgres", "mysql")
_JDK = "default-jdk-headless"
_DRIVERS = {
    "postgres": ("postgresql.jar", "libpostgresql-jdbc-java"),
    "mysql": ("mariadb-java-client.jar", "libmariadb-java"),
}


def programs(server: Server, url: str, target: Path) -> Programs:
    """Compile the programs; they reach the database through a relay with a port."""
    java, driver = need_java(server.engine)
    relay = Relay(url)
    return Programs(
        worker=(java, "Worker"),
        enqueue=(java, "Enqueue"),
        environment={
            "CLASSPATH": os.pathsep.join([str(_compiled(target.parent / "java")), str(driver)]),
            "DATABASE_URL": jdbc_url(server.engine, relay.url),
        },
        directory=target,
        close=relay.close,
    )


def need_java(engine: str) -> tuple[str, Path]:
    """Return the paths of Java and an engine's driver; skip the test if one is missing."""
    name, package = _DRIVERS[engine]
    driver = Path("/usr/share/java", name)
    if not driver.exists():
        pytest.skip(f"no {driver}{TO_RUN}apt-get install {package}")
    return need("java", _JDK), driver


def _compiled(folder: Path) -> Path:
    """Return the folder of the classes, shared by the tests of one process."""
    if not (folder / "Worker.class").exists():
        compiler = need("javac", _JDK)
        sources = sorted((EXAMPLES / "java").glob("*.java"))
        subprocess.run([compiler, "-Xlint:all", "-Werror", "-d", folder, *sources], check=True)
    return folder


def jdbc_url(engine: str, url: str) -> str:
    """Return the JDBC form of a URL."""
    if engine == "postgres":
        words = {word: str(value) for word, value in conninfo_to_dict(url).items()}
        place = f"{words.pop('host')}:{words.pop('port')}/{words.pop('dbname')}"
        return f"jdbc:postgresql://{place}?{urlencode(words)}"
    parts = urlsplit(url)
    account = {"user": unquote(parts.username or ""), "password": unquote(parts.password or "")}
    return f"jdbc:mariadb://{parts.hostname}:{parts.port}{parts.path}?{urlencode(account)}"
