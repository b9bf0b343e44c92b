"""Build the site: python -m docs.build [FOLDER]; make docs writes it to build/docs.

Sphinx reads a copy of the repository with the generated reference pages added. So these are not
committed, and parallel builds do not conflict.
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
    """Copy the input of Sphinx to a new folder."""
    shutil.copytree(ROOT, source, ignore=_NO_PAGES)
    (source / FOLDER).mkdir()
    for name, text in pages().items():
        (source / FOLDER / name).write_text(text, encoding="utf-8")


def build(target: Path) -> int:
    """Write the site to a folder; return 0 if there is no warning."""
    with tempfile.TemporaryDirectory(prefix="rowq-docs-") as folder:
        source = Path(folder, "source")
        lay_out(source)
        arguments = ["-n", "-W", "--keep-going", "-q", "-b", "html", "-d", f"{folder}/doctrees"]
        return build_main([*arguments, "-c", f"{source}/docs", str(source), str(target)])


def _is_replaceable(target: Path) -> bool:
    """Return whether a folder is empty or contains a site of Sphinx."""
    return target.is_dir() and ((target / "objects.inv").is_file() or not any(target.iterdir()))


def main() -> None:
    """Build the site, replacing an older one."""
    parser = argparse.ArgumentParser(prog="python -m docs.build", description="Build the site.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "docs")
    target = parser.parse_args().folder
    if target.exists() and not _is_replaceable(target):
        parser.error(f"{target} is not a site of Sphinx; use a new or empty folder")
    shutil.rmtree(target, ignore_errors=True)
    sys.exit(build(target))


if __name__ == "__main__":
    main()
