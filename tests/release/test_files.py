"""The files of a release work without a checkout."""

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import rowq
from sql.generate.dist import HOW_TO_RUN, write_dist
from sql.generate.release import SUMS
from tests.engines.base import TO_RUN, Server, wait_until
from tests.engines.postgres.psql import psql_program
from tests.helpers.releases import EVERY
from tests.static.sources import ROOT

COMPOSE = ROOT / "compose.yaml"
SERVICES: dict[str, Any] = YAML(typ="safe").load(COMPOSE.read_text(encoding="utf-8"))["services"]


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that make dist writes."""
    folder = tmp_path_factory.mktemp("dist")
    write_dist(folder)
    return folder


@pytest.fixture(scope="session")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the programs' folder of an environment with the wheel and without a checkout."""
    place = tmp_path_factory.mktemp("venv")
    run([sys.executable, "-m", "venv", place], place)
    programs = place / "bin"
    look = [str(programs / "pip"), "install", "--quiet", "--dry-run", "--no-deps", "psycopg"]
    if subprocess.run(look, cwd=place, env=outside(), capture_output=True, check=False).returncode:
        pytest.skip(f"pip finds no package index{TO_RUN}give pip access to one")
    (wheel,) = dist.glob("*.whl")
    words = ("install", "--quiet", "--disable-pip-version-check")
    run([programs / "pip", *words, f"{wheel}[postgres,mysql]"], place)
    return programs


def run(command: list[Any], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program of the environment in a folder and return its output."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment or outside(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def outside(programs: Path | None = None, **variables: str) -> dict[str, str]:
    """Return the environment variables of a user without a checkout."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    path = [str(programs)] if programs else []
    return {**environment, "PATH": os.pathsep.join([*path, environment["PATH"]]), **variables}


def wheel_of(source: Path, folder: Path) -> bytes:
    """Build and return a directory's wheel."""
    words = ("--no-isolation", "--wheel", "--outdir", folder)
    run([sys.executable, "-m", "build", *words, source], folder)
    (wheel,) = folder.glob("*.whl")
    return wheel.read_bytes()


def test_release_has_wheel_sdist_and_two_scripts_per_engine(dist: Path) -> None:
    names = {f"rowq-{engine}{form}.sql" for engine in HOW_TO_RUN for form in ("", ".plain")}
    names |= {f"rowq-{rowq.__version__}{end}" for end in ("-py3-none-any.whl", ".tar.gz")}
    assert {path.name for path in dist.iterdir()} == names | {SUMS}
    said = run(["sha256sum", "--check", "--strict", SUMS], dist)
    assert said.count(": OK\n") == len(names)


def test_sdist_builds_the_same_wheel_as_the_checkout(dist: Path, tmp_path: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    (wheel,) = dist.glob("*.whl")
    for name in ("unpacked", "first", "second"):
        (tmp_path / name).mkdir()
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert not (unpacked / "tests").exists()
    assert wheel_of(unpacked, tmp_path / "first") == wheel.read_bytes()
    assert wheel_of(ROOT, tmp_path / "second") == wheel.read_bytes()


@pytest.mark.slow("installs the wheel as compose.yaml does", ci=False)
def test_compose_commands_work_with_the_wheel(
    server: Server, installed: Path, empty_database: str, tmp_path: Path
) -> None:
    """Run without containers: the image has the same wheel, and its entry point is rowq."""
    product = server.name.rstrip(".0123456789")
    if server.engine not in {"postgres", "mysql"}:
        pytest.skip(f"the wheel is installed without its driver{TO_RUN}--engine postgres18")
    environment = outside(installed, ROWQ_URL=empty_database)
    migrate = SERVICES[f"{product}-migrate"]["entrypoint"]
    said = run(migrate, tmp_path, environment)
    installed_ones = "".join(f"installed migration {number}\n" for number in EVERY)
    assert said == f"{installed_ones}orders: created\n"
    run([installed / "rowq", "enqueue", "orders", '{"order": 17}'], tmp_path, environment)
    printed = tmp_path / "printed"
    with printed.open("wb") as output:
        worker = subprocess.Popen(
            [str(installed / "rowq"), *SERVICES[f"{product}-worker"]["command"]],
            cwd=tmp_path,
            env=environment,
            stdout=output,
        )
    try:
        wait_until(lambda: b'{"order": 17}' in printed.read_bytes(), "the body is printed", 60)
        worker.terminate()
        assert worker.wait(60) == 0
    finally:
        worker.kill()
        worker.wait()
    where = "import rowq; print(rowq.__file__)"
    assert str(ROOT) not in run([installed / "python", "-c", where], tmp_path, environment)


@pytest.mark.slow("installs the wheel", ci=False)
def test_yoyo_finds_backend_and_migrations_of_the_wheel(
    server: Server, installed: Path, empty_database: str, tmp_path: Path
) -> None:
    if server.engine not in {"postgres", "mysql"}:
        pytest.skip(f"the wheel is installed without its driver{TO_RUN}--engine postgres18")
    words = (f"--database=rowq+{empty_database}", f"package:rowq:migrations/{server.engine}")
    for command in ("apply", "list"):
        said = run([installed / "yoyo", command, *words], tmp_path, outside())
    assert [line.split()[0] for line in said.splitlines()[2:]] == ["A"] * len(EVERY)


@pytest.mark.requires("psql")
def test_script_installs_and_removes_by_its_first_line(
    server: Server, dist: Path, installed: Path, empty_database: str
) -> None:
    programs = Path(psql_program(server)).parent
    environment = outside(programs, ROWQ_URL=empty_database)
    first = (dist / "rowq-postgres.sql").read_text(encoding="utf-8").partition("\n")[0]
    _, command, remove = (part.split(": ", 1)[-1] for part in first.split(". ", 2))
    assert rowq.__version__ not in command
    run(["sh", "-ec", command], dist, environment)
    run([installed / "rowq", "status"], dist, environment)
    statement = remove.partition(";")[0]
    run([programs / "psql", empty_database, "-c", statement], dist, environment)
    run(["sh", "-ec", command], dist, environment)
    run([installed / "rowq", "rollback", "--to", "0"], dist, environment)


def test_docker_compose_accepts_every_profile() -> None:
    """static/test_machines.py tests its schema and images."""
    docker = shutil.which("docker")
    words = [docker, "compose", "--file", COMPOSE]
    is_there = (
        docker
        and not subprocess.run(
            [docker, "compose", "version"], capture_output=True, check=False
        ).returncode
    )
    if not is_there:
        pytest.skip(f"no docker compose{TO_RUN}install Docker with its compose plugin")
    environment = outside(ROWQ_PASSWORD="Choose-1")
    for profile in ("postgres", "mariadb", "mysql", "sqlserver", "oracle"):
        said = run([*words, "--profile", profile, "config"], ROOT, environment)
        assert f"{profile}-worker" in said
