"""Imports: an application that only calls routines needs only a driver."""

import importlib.util
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

import rowq
from tests.engines.base import Connection
from tests.static.sources import ROOT

# Files of the drivers and their imports.
DRIVERS = (
    *("psycopg", "psycopg_binary", "psycopg_binary.libs", "typing_extensions.py"),
    *("pymysql", "pyodbc*.so", "pyodbc*.pyd"),
    *("oracledb", "cryptography", "_cffi_backend*", "cffi", "pycparser"),
)
TOOLS = (
    *("click", "rich", "typer", "yoyo", "prometheus_client", "rowq.tools.metrics", "http.server"),
    *(
        "opentelemetry",
        "rowq.contrib.opentelemetry.traces",
        "asyncpg",
        "sqlalchemy",
        "rowq.contrib.sqlalchemy",
        "rowq.contrib.asyncpg",
    ),
    *(
        "pytest",
        "rowq.contrib.testing",
        "django",
        "rowq.contrib.django",
        "fastapi",
        "rowq.contrib.fastapi",
    ),
    *("starlette", "jinja2", "uvicorn", "rowq.web"),
)

Python = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Python:
    """Return a function that runs Python with only rowq and drivers installed."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    found = importlib.util.find_spec("psycopg")
    assert found
    assert found.origin
    here = Path(found.origin).parent.parent
    for there in (path for pattern in DRIVERS for path in here.glob(pattern)):
        (packages / there.name).symlink_to(there)
    (packages / "rowq.pth").write_text(f"{ROOT / 'python_client'}\n", encoding="utf-8")

    def run(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(folder / "bin" / "python"), "-c", text, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)

    return run


def test_calls_need_only_a_driver(
    python: Python, connection: Connection, queue_name: str, database_url: str
) -> None:
    rowq.Queue(connection).create_queue(queue_name)
    done = python(
        """
import sys
import rowq

url, name = sys.argv[1:]
with rowq.connect(url) as queue:
    queue.enqueue(name, 7)
    handled = []
    rowq.Worker(url, name, lambda message: handled.append(message.data), drain=True).run()
print(handled)
        """,
        database_url,
        queue_name,
    )
    assert (done.stdout, done.returncode) == ("[7]\n", 0), done.stderr


def test_import_loads_no_tools() -> None:
    text = f"import sys, rowq; print([name for name in {TOOLS} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_import_loads_only_the_client() -> None:
    text = "import sys, rowq; print(*sorted(name for name in sys.modules if name[:4] == 'rowq'))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert len(loaded) <= 22
    above = ("worker", "tools", "web", "contrib")
    assert [name for name in loaded if name.split(".")[1:2] and name.split(".")[1] in above] == []


def test_every_name_is_listed_and_importable() -> None:
    assert len(set(rowq.__all__)) == len(rowq.__all__)
    assert set(rowq.__all__) <= set(dir(rowq))
    assert [name for name in rowq.__all__ if not hasattr(rowq, name)] == []
    with pytest.raises(AttributeError, match="module 'rowq' has no attribute 'nothing'"):
        rowq.nothing  # type: ignore[attr-defined] # noqa: B018


NEEDS = {
    "from rowq.tools.program import main; main()": "rowq: typer is missing; run tools",
    "import rowq.tools.metrics as m; m.Collector('postgresql://nowhere/x')": (
        "PackageMissing: metrics need prometheus-client: metrics"
    ),
    "import rowq; rowq.Worker('postgresql://nowhere/x', 'orders', print, metrics_port=0)": (
        "PackageMissing: metrics need prometheus-client: metrics"
    ),
    "import rowq; rowq.instrument()": "PackageMissing: traces need opentelemetry-api: otel",
    "import rowq.contrib.sqlalchemy": (
        "PackageMissing: rowq.contrib.sqlalchemy needs SQLAlchemy: sqlalchemy"
    ),
    "import rowq.tools.migrate": "yoyo-migrations is missing; run tools",
}
"""Programs, and the end of their errors without the name of the extra in its command."""


@pytest.mark.parametrize("text", NEEDS, ids=lambda text: text[:40])
def test_missing_package_is_named(python: Python, text: str) -> None:
    error, _, extra = NEEDS[text].rpartition(" ")
    done = python(text)
    assert done.returncode == (7 if "main()" in text else 1)
    assert done.stderr.endswith(f"{error} pip install 'rowq[{extra}]'\n")


def test_environment_without_opentelemetry_only_warns(python: Python) -> None:
    done = python(
        "import os; os.environ['OTEL_INSTRUMENTATION_ROWQ'] = '1'; import rowq, rowq.tracing as t;"
        "print(t.active)"
    )
    assert done.stdout == "None\n"
    assert "traces need opentelemetry-api: pip install 'rowq[otel]'" in done.stderr


def test_environment_enables_traces() -> None:
    text = "import rowq; from rowq import tracing; print(type(tracing.active).__name__)"
    for value, expected in (("1", "Traces"), ("0", "NoneType")):
        environment = os.environ | {"OTEL_INSTRUMENTATION_ROWQ": value}
        command = [sys.executable, "-c", text]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        assert done.stdout == f"{expected}\n"
