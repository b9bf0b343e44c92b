"""Links and facts of the pages."""

import re
from collections.abc import Iterable

from rowq.contract import load_contract
from tests.static.each import for_each
from tests.static.sources import ENGINES, ROOT

PAGES = [
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "*/*.md", "*/*/*.md", "sql/*/*/*.md")
    for path in sorted(ROOT.glob(pattern))
    if not path.relative_to(ROOT).parts[0].startswith(".")
]


@for_each(PAGES)
def test_links_point_to_existing_files(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
    missing = [name for name in targets if not (ROOT / page).parent.joinpath(name).exists()]
    assert not missing


FRONT = ("README.md", "docs/index.md", "CHANGELOG.md")
GENERATED = ("sql/CONTRACT.md", "benchmarks/RESULTS.md")


@for_each(page for page in PAGES if page not in (*FRONT, *GENERATED))
def test_page_names_its_reader_and_is_short(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert re.match(r"# .+\n\nFor [^.]+\.\n", text), "begin with: For operators."
    assert text.count("\n") <= 260


@for_each(["README.md", *(f"sql/{engine}/README.md" for engine in ENGINES)])
def test_first_pages_have_at_most_150_lines(page: str) -> None:
    assert (ROOT / page).read_text(encoding="utf-8").count("\n") <= 150


NUMBERS = {"nine": 9, "ten": 10, "eleven": 11, "twelve": 12}


def test_page_counts_the_files_of_a_routine() -> None:
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    listed = page.partition("## Add a routine\n")[2].partition("\nThen `make generate`")[0]
    said = re.search(r"At most (\w+) files by hand", listed)
    assert said
    assert len(files_in(listed, ENGINES)) == NUMBERS[said[1]]
    for name, routine in load_contract().routines.items():
        files = files_in(listed, routine.engines or ENGINES)
        missing = [file for file in files if not (ROOT / file.replace("<name>", name)).is_file()]
        assert not missing, name


def files_in(listed: str, engines: Iterable[str]) -> set[str]:
    """Return the files that the page lists for these engines."""
    return {
        path.replace("<engine>", engine)
        for path in re.findall(r"`([\w/.<>]+\.[a-z]+)`", listed)
        for engine in (engines if "<engine>" in path else [""])
    }


def test_code_comes_after_the_first_paragraph() -> None:
    for page in ("README.md", "docs/index.md"):
        title, paragraph, code, *_ = (ROOT / page).read_text(encoding="utf-8").split("\n\n")
        assert title == "# rowq"
        assert len(paragraph.split()) < 50
        assert code.startswith("```sql\nselect * from rowq.enqueue(")
        assert code.count("rowq.") == 3


def test_numbers_section_begins_with_figures() -> None:
    numbers = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Numbers\n")[2]
    first = next(line for line in numbers.splitlines() if line.startswith("|"))
    assert first == "|  | rowq | pgmq |"
    assert "target" not in numbers.partition("\n\nOf ")[0]


INDEX = re.compile(r"pip install [^\n`]*['\"]?rowq\[")


@for_each(PAGES)
def test_no_page_installs_from_an_index(page: str) -> None:
    """No index has rowq: install '.[postgres]' from a clone, or a release's wheel."""
    assert not INDEX.search((ROOT / page).read_text(encoding="utf-8"))
