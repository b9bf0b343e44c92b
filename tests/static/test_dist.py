"""The files of a release that need no build."""

import re
import tomllib
from pathlib import Path

import pytest
from trove_classifiers import classifiers

import rowq
from rowq.tools import migrate
from sql.generate.dist import HOW_TO_RUN, scripts, write_scripts
from sql.generate.long_description import LongDescription, with_absolute_links
from sql.generate.release import SUMS, digest_of, read_sums, sums_of, write_sums
from tests.static.sources import ROOT

pytestmark = pytest.mark.slow("builds the scripts of all engines")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def test_script_is_output_of_rowq_sql_below_a_first_line() -> None:
    written = scripts()
    assert len(written) == 2 * len(HOW_TO_RUN)
    for engine in HOW_TO_RUN:
        for name, made in (
            (f"rowq-{engine}.sql", migrate.script(engine)),
            (f"rowq-{engine}.plain.sql", migrate.plain_script(engine)),
        ):
            first, _, rest = written[name].partition("\n")
            assert first.startswith(f"-- rowq {rowq.__version__} for {engine}. Run: ")
            assert ". Remove: " in first
            assert (name in first) is not name.endswith(".plain.sql")
            assert rest == made


def test_sums_are_those_of_the_files(tmp_path: Path) -> None:
    write_scripts(tmp_path)
    names = [path.name for path in tmp_path.iterdir()]
    (tmp_path / "rowq-notes.txt").write_text("not of a release", encoding="utf-8")
    write_sums(tmp_path, sums_of(tmp_path, names))
    lines = (tmp_path / SUMS).read_text(encoding="utf-8").splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert sums == {name: digest_of(tmp_path / name) for name in names} == read_sums(tmp_path)


def test_absolute_links_point_to_files_of_the_tag() -> None:
    page = "[a](sql/README.md#b) [c](#d) [e](https://f/g) ![h](i.svg) [j](mailto:k@l)"
    assert with_absolute_links(page, "https://host/rowq/", "1.2", "") == (
        "[a](https://host/rowq/blob/v1.2/sql/README.md#b) [c](#d) [e](https://f/g)"
        " ![h](https://host/rowq/raw/v1.2/i.svg) [j](mailto:k@l)"
    )


def test_long_description_is_readme_with_repository_links() -> None:
    page = (ROOT / "python_client" / "README.md").read_text(encoding="utf-8")
    metadata = {"version": "1.2", **PROJECT}
    metadata.pop("urls", None)
    hook = LongDescription(str(ROOT), {})
    hook.update(metadata)
    assert metadata["readme"] == {"content-type": "text/markdown", "text": page}
    base = "https://host/rowq/blob/v1.2/"
    metadata = {"version": "1.2", "urls": {"Repository": "https://host/rowq"}}
    hook.update(metadata)
    links = LINK.findall(metadata["readme"]["text"])
    assert len(links) == len(LINK.findall(page))
    for link in links:
        assert link.startswith((base, "https://", "#"))
        if link.startswith(base):
            assert (ROOT / link.removeprefix(base).partition("#")[0]).exists(), link


def test_classifiers_are_known() -> None:
    assert set(PROJECT["classifiers"]) <= classifiers
