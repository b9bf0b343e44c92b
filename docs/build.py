"""Build the site: python -m docs.build [FOLDER]; make docs writes it to build/docs.

Sphinx reads a copy of the repository, for its pages and the files that they link to, with the pages
of the routines added, which are made of the contract. So what is generated is not committed, and
several builds at a time do not meet.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from sphinx.cmd.build import build_main

from docs.reference import FOLDER, pages

ROOT = Path(__file__).resolve().parents[1]


_NO_PAGES = shutil.ignore_patterns(".*", "dist", "build", "node_modules", "__pycache__", "*.xz")


def lay_out(source: Path) -> None:
    """Put all that Sphinx reads into a new folder."""
    shutil.copytree(ROOT, source, ignore=_NO_PAGES)
    (source / FOLDER).mkdir()
    for name, text in pages().items():
        (source / FOLDER / name).write_text(text, encoding="utf-8")


def build(target: Path) -> int:
    """Write the site to a folder; return 0 if there was no warning."""
    with tempfile.TemporaryDirectory(prefix="rowq-docs-") as folder:
        source = Path(folder, "source")
        lay_out(source)
        arguments = ["-n", "-W", "--keep-going", "-q", "-b", "html", "-d", f"{folder}/doctrees"]
        return build_main([*arguments, "-c", f"{source}/docs", str(source), str(target)])


def _is_replaceable(target: Path) -> bool:
    """Whether a folder may be deleted: there is nothing in it, or a site that Sphinx has made."""
    return target.is_dir() and ((target / "objects.inv").is_file() or not any(target.iterdir()))


def main() -> None:
    """Write the site to the folder that the command line names, in the place of an older one."""
    parser = argparse.ArgumentParser(prog="python -m docs.build", description="Build the site.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "docs")
    target = parser.parse_args().folder
    if target.exists() and not _is_replaceable(target):
        parser.error(f"{target} is no site of Sphinx's: name a new folder, or an empty one")
    shutil.rmtree(target, ignore_errors=True)
    sys.exit(build(target))


if __name__ == "__main__":
    main()
