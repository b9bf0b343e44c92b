"""Write the distribution files of a release: make dist.

The wheel, the sdist, a script of each engine in both forms of `rowq sql`, and the sums of all.
They are not committed.
"""

import subprocess
import sys
from pathlib import Path

import rowq
from rowq.tools import migrate
from sql.generate.long_description import REPOSITORY, repository_of
from sql.generate.release import ROOT, SUMS, faults_of_build, is_claimed, sums_of, write_sums
from sql.generate.version import faults_of_version, version_of

FOLDER = ROOT / "dist"

HOW_TO_RUN = {
    "postgres": 'psql "$ROWQ_URL" -f {name}',
    "mariadb": "mariadb --comments < {name}",
    "mysql": "mysql --comments < {name}",
    "sqlserver": "sqlcmd -S server -d database -b -i {name}",
    "oracle": "sqlplus user@service @{name}",
}
"""By engine, the command that runs its script."""

_HOW_TO_REMOVE = {
    "postgres": "drop schema rowq cascade",
    "mariadb": "drop database rowq",
    "mysql": "drop database rowq",
}
"""By engine, the statement that removes rowq with its data, if there is one."""


def scripts() -> dict[str, str]:
    """Return every script by name."""
    texts: dict[str, str] = {}
    for engine, command in HOW_TO_RUN.items():
        name, plain = f"rowq-{engine}.sql", f"rowq-{engine}.plain.sql"
        by_driver = "with a driver, as described below"
        texts[name] = _first_line(engine, command.format(name=name)) + migrate.script(engine)
        texts[plain] = _first_line(engine, by_driver) + migrate.plain_script(engine)
    return texts


def write_scripts(folder: Path) -> None:
    """Write the scripts into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in scripts().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def packages() -> tuple[str, str]:
    """Return the names of the wheel and of the sdist."""
    return f"rowq-{rowq.__version__}-py3-none-any.whl", f"rowq-{rowq.__version__}.tar.gz"


def write_dist(folder: Path = FOLDER) -> None:
    """Replace the distribution files in a folder; hatchling must be installed."""
    for path in (*folder.glob("rowq-*"), folder / SUMS):
        path.unlink(missing_ok=True)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    write_scripts(folder)
    names = [*packages(), *scripts()]
    write_sums(folder, sums_of(folder, names))
    for name in sorted([*names, SUMS]):
        print(f"{name}: written")


def require_release(root: Path) -> None:
    """Raise SystemExit if a checkout does not match its version.

    If CHANGELOG.md or a tag claims that the version is released, this must be that release;
    otherwise the version must be the same everywhere.
    """
    faults = faults_of_build(root) if is_claimed(root) else faults_of_version(root)
    if faults:
        raise SystemExit("\n".join(["Nothing was built:", *faults]))


def make_dist() -> None:
    """Write the distribution files into dist, and print why they must not be published.

    Raises:
        SystemExit: this checkout does not match its version; nothing was written.
    """
    require_release(ROOT)
    write_dist()
    if not is_claimed(ROOT):
        reason = f"{version_of(ROOT)} is not released; run make release"
        print(f"for testing only, do not publish: {reason}")
    if repository_of(ROOT) is None:
        print(
            f"pyproject.toml has no {REPOSITORY} in [project.urls]: relative links of the long"
            " description do not work on a package index"
        )


def _first_line(engine: str, how: str) -> str:
    statement = _HOW_TO_REMOVE.get(engine)
    remove = f"{statement}; or rowq rollback --to 0" if statement else "rowq rollback --to 0"
    return f"-- rowq {rowq.__version__} for {engine}. Run: {how}. Remove: {remove}\n"
