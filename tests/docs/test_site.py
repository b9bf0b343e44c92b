"""The site builds without warnings, loads without a network, and its search works."""

import html
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import playwright.sync_api as playwright
import pytest
import snowballstemmer
from typer.main import get_command

from docs import build, picture
from docs.calls import ENGINES, by_language, on_mysql
from docs.commands import usages
from rowq.contract import load_contract
from rowq.engines.calls import inputs_of
from rowq.tools.command.main import app
from tests.helpers.npm import package
from tests.static.sources import ROOT
from tests.web.chromium import PROGRAM, chromium

pytestmark = pytest.mark.slow("builds the site")

CUT = """[...document.querySelectorAll('article pre')]
    .filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"""
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
REMOTE_IN_CSS = re.compile(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site once, with warnings as errors."""
    target = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "docs.build", target],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return target


def test_build_does_not_replace_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "letter").write_text("dear")
    monkeypatch.setattr(sys, "argv", ["docs.build", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        build.main()
    assert ended.value.code == 2
    assert (tmp_path / "letter").read_text() == "dear"


def test_java_example_reads_the_row_of_a_procedure() -> None:
    for name in ("dequeue_wait", "wait_for_result"):
        assert "call.executeQuery();" in dict(by_language(load_contract().routine(name)))["Java"]


class _Loaded(HTMLParser):
    """Collects the resources that a browser loads with a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link":
            self.found.append(given.get("href") or "")
        elif tag in ("script", "img", "iframe", "source", "object", "embed", "audio", "video"):
            self.found += [given.get(name) or "" for name in ("src", "srcset", "data")]


def loaded_by(text: str) -> list[str]:
    """Return the external resources of a page."""
    page = _Loaded()
    page.feed(text)
    return [name for name in page.found if re.match(r"(\w+:)?//", name)]


def test_pages_load_no_external_resource(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > len(load_contract().routines)
    for page in pages:
        assert loaded_by(page.read_text(encoding="utf-8")) == [], page
    for style in sorted(site.rglob("*.css")):
        assert not REMOTE_IN_CSS.search(style.read_text(encoding="utf-8")), style


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://example.org/a.js"></script>',
        '<link rel="stylesheet" href="//example.org/a.css">',
        '<img src="http://example.org/a.png">',
    ],
)
def test_external_resource_is_found(text: str) -> None:
    assert len(loaded_by(text)) == 1


@pytest.mark.parametrize("word", ["stale_claim", "lease", "retry"])
def test_search_index_has_word(word: str, site: Path) -> None:
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    assert index["terms"].get(snowballstemmer.stemmer("english").stemWord(word))


def test_commands_page_has_every_command_and_option(site: Path) -> None:
    page = (site / "docs" / "reference" / "commands.html").read_text(encoding="utf-8")
    text = html.unescape(re.sub(r"<[^>]+>", "", page))
    found = usages()
    assert len(found) > 50
    for usage, _ in found:
        assert usage in text, usage
    missing = {name for name in options_of(get_command(app)) if name not in text}
    assert missing <= {"--version", "--install-completion", "--show-completion"}


def options_of(group: Any) -> set[str]:
    """Return the options of all commands of a group."""
    found = {name for one in group.params for name in one.opts if name.startswith("-")}
    return found.union(*(options_of(one) for one in getattr(group, "commands", {}).values()))


def test_search_has_the_text_of_every_page(site: Path) -> None:
    text = (site / "_static" / "search_texts.js").read_text(encoding="utf-8")
    texts = json.loads(text.removeprefix("const PAGE_TEXTS = ").removesuffix(";\n"))
    pages = {
        path.relative_to(site).as_posix().removesuffix(".html") for path in site.rglob("*.html")
    }
    assert pages - texts.keys() <= {"index", "search", "genindex", "py-modindex"}
    assert "rowq is a message queue inside the database" in texts["docs/index"]
    assert "¶" not in texts["docs/install"]


@pytest.mark.skipif(
    PROGRAM is None,
    reason="no chromium; to run it: apt-get install --no-install-recommends chromium",
)
def test_local_site_shows_search_results_and_whole_code(site: Path) -> None:
    with chromium() as browser:
        for width in (1400, 390):
            page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
            page.goto(f"{(site / 'search.html').as_uri()}?q=savepoint")
            found = page.locator("ul.search li")
            playwright.expect(found.locator("p.context").first).to_contain_text("savepoint")
            playwright.expect(page.locator(".search-summary")).to_contain_text("found")
            assert found.count() == page.locator("ul.search p.context").count() > 3
            for name in ("index", "start", "install", "reference/commands", "reference/enqueue"):
                page.goto((site / "docs" / f"{name}.html").as_uri())
                assert page.evaluate(CUT) == [], (name, width)
                assert page.evaluate(FITS), (name, width)


def test_routine_page_has_call_on_every_engine(site: Path) -> None:
    contract = load_contract()
    for name, routine in {**contract.routines, **contract.own}.items():
        page = (site / "docs" / "reference" / f"{name}.html").read_text(encoding="utf-8")
        for engine in routine.engines or ENGINES:
            assert ENGINES[engine] in page, (name, engine)


def test_mysql_call_has_all_parameters() -> None:
    for name, routine in load_contract().of("mysql").items():
        assert on_mysql(routine, lambda _number, _name: "?").count("?") == len(
            inputs_of("mysql", name)
        )


@pytest.mark.parametrize("file", ["index.html", "llms.txt"])
def test_front_page_links_to_pages(file: str, site: Path) -> None:
    text = (site / file).read_text(encoding="utf-8")
    targets = re.findall(r"[\w/-]+\.html\b", text)
    assert targets
    assert [name for name in targets if not (site / name).is_file()] == []


@pytest.mark.parametrize("drawn", picture.DRAWN, ids=lambda path: path.stem)
def test_picture_is_current(drawn: Path) -> None:
    package("@viz-js/viz")
    assert drawn.read_text(encoding="utf-8") == picture.drawn(drawn), "run: python -m docs.picture"
