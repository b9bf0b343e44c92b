"""Write what a release consists of: make dist.

The wheel and the sdist, a script of each engine for who has no Python, in both forms that `rowq
sql` prints, and the sums of all of them. They go where nothing is committed, because the repository
holds every text once.
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
"""By engine, the one statement that removes rowq with what is in it, where there is one."""


def scripts() -> dict[str, str]:
    """Return name and text of every script."""
    texts: dict[str, str] = {}
    for engine, command in HOW_TO_RUN.items():
        name, plain = f"rowq-{engine}.sql", f"rowq-{engine}.plain.sql"
        by_driver = "by a driver, as said below"
        texts[name] = _first_line(engine, command.format(name=name)) + migrate.script(engine)
        texts[plain] = _first_line(engine, by_driver) + migrate.plain_script(engine)
    return texts


def write_scripts(folder: Path) -> None:
    """Write the scripts into a folder, in the place of what is there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in scripts().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def packages() -> tuple[str, str]:
    """Return the names of the wheel and of the sdist."""
    return f"rowq-{rowq.__version__}-py3-none-any.whl", f"rowq-{rowq.__version__}.tar.gz"


def write_dist(folder: Path = FOLDER) -> None:
    """Write all of it into a folder, in the place of an earlier release's files.

    The wheel is built from the sdist. Nothing is fetched: hatchling must be there.
    """
    for path in (*folder.glob("rowq-*"), folder / SUMS):
        path.unlink(missing_ok=True)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    write_scripts(folder)
    names = [*packages(), *scripts()]
    write_sums(folder, sums_of(folder, names))
    for name in sorted([*names, SUMS]):
        print(f"{name}: written")


def refuse_what_is_no_release(root: Path) -> None:
    """Raise SystemExit if a checkout is not what its version says.

    Where CHANGELOG.md or a tag says that the version is released, this must be that release. Where
    none does, the version must at least be the same in all places.
    """
    faults = faults_of_build(root) if is_claimed(root) else faults_of_version(root)
    if faults:
        raise SystemExit("\n".join(["Nothing was built:", *faults]))


def make_dist() -> None:
    """Write all of it into dist, and say what keeps it from being given away.

    Raises:
        SystemExit: this checkout is not what its version says; nothing was written.
    """
    refuse_what_is_no_release(ROOT)
    write_dist()
    if not is_claimed(ROOT):
        reason = f"{version_of(ROOT)} is not released: make release"
        print(f"for trying only, not to be given away: {reason}")
    if repository_of(ROOT) is None:
        print(
            f"pyproject.toml names no {REPOSITORY} in [project.urls]: the links of the long"
            " description stay relative, and lead nowhere on a package index"
        )


def _first_line(engine: str, how: str) -> str:
    statement = _HOW_TO_REMOVE.get(engine)
    remove = f"{statement}; or rowq rollback --to 0" if statement else "rowq rollback --to 0"
    return f"-- rowq {rowq.__version__} for {engine}. Run: {how}. Remove: {remove}\n"
