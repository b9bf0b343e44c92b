"""C#: the unchanged example, compiled by Mono with a replacement of Npgsql through ODBC."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.engines.base import TO_RUN, Server
from tests.examples.programs import EXAMPLES, Programs, need

ENGINES = ("postgres",)
_PACKAGES = "mono-mcs mono-runtime libmono-system-data4.0-cil libmono-posix4.0-cil odbc-postgresql"
_LIBRARIES = ("System.Core", "System.Data", "Mono.Posix")
_STAND_INS = Path(__file__).parents[1] / "csharp"
_WORDS = {
    "host": "Host",
    "port": "Port",
    "dbname": "Database",
    "user": "Username",
    "password": "Password",
}


def programs(server: Server, url: str, target: Path) -> Programs:  # noqa: ARG001
    """Compile the program, which works or enqueues by its first argument."""
    mono = need("mono", _PACKAGES)
    drivers = sorted(Path("/usr/lib").glob("*/odbc/psqlodbcw.so"))
    libraries = [Path("/usr/lib/mono/4.5", f"{name}.dll") for name in _LIBRARIES]
    if not drivers or not all(library.exists() for library in libraries):
        pytest.skip(f"no ODBC driver or library of Mono{TO_RUN}apt-get install {_PACKAGES}")
    folder = target.parent / "csharp"
    if not (folder / "rowq.exe").exists():
        _compile(folder)
    given = {"port": "5432", **conninfo_to_dict(url)}
    words = ";".join(f"{name}={given[word]}" for word, name in _WORDS.items() if word in given)
    program = [mono, str(folder / "rowq.exe")]
    return Programs(
        worker=(*program, "worker"),
        enqueue=(*program, "enqueue"),
        environment={"CONNECTION_STRING": words, "ODBC_DRIVER": str(drivers[0])},
        directory=target,
        close=_remove_logs,
    )


def _remove_logs() -> None:
    """Remove the log files that the ODBC driver always writes."""
    for log in Path(tempfile.gettempdir()).glob("psqlodbc_mono-sgen_*.log"):
        log.unlink(missing_ok=True)


def _compile(folder: Path) -> None:
    """Compile everything, SqlServer.cs with System.Data.SqlClient."""
    compiler = need("mcs", _PACKAGES)
    shutil.copytree(EXAMPLES / "csharp", folder, dirs_exist_ok=True)
    with_driver = folder / "SqlServer.cs"
    text = with_driver.read_text(encoding="utf-8")
    assert "Microsoft.Data.SqlClient" in text
    with_driver.write_text(text.replace("Microsoft.Data.", "System.Data."), encoding="utf-8")
    sources = [*sorted(folder.glob("*.cs")), *sorted(_STAND_INS.glob("*.cs"))]
    options = ["-langversion:latest", "-warnaserror", f"-out:{folder / 'rowq.exe'}"]
    libraries = [f"-r:{name}.dll" for name in _LIBRARIES]
    subprocess.run([compiler, *options, *libraries, *sources], check=True)
