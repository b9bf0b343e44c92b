"""Write the scripts of every engine for who has no Python: make scripts.

For each engine what `rowq sql` prints, with --plain and without, and the sums of all of them.
They go where nothing is committed, because the repository holds every text once.
"""

from pathlib import Path

from generate.release import ROOT, SUMS, digest_of
from rowq import migrate

FOLDER = ROOT / "dist" / "scripts"
ENGINES = ("postgres", "mariadb-mysql", "sqlserver", "oracle")


def scripts() -> dict[str, str]:
    """Return name and text of every script."""
    texts: dict[str, str] = {}
    for name in ENGINES:
        engine = name.partition("-")[0]
        texts[f"rowq-{name}.sql"] = migrate.script(engine)
        texts[f"rowq-{name}.plain.sql"] = migrate.plain_script(engine)
    return texts


def write_scripts(folder: Path = FOLDER) -> None:
    """Write the scripts and their sums into a folder, in the place of what is there."""
    folder.mkdir(parents=True, exist_ok=True)
    sums = []
    for name, text in scripts().items():
        path = folder / name
        path.write_text(text, encoding="utf-8", newline="\n")
        sums.append(f"{digest_of(path)}  {name}\n")
        print(f"{name}: written")
    (folder / SUMS).write_text("".join(sums), encoding="utf-8", newline="\n")
