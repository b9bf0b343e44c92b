"""Texts of all pages as a script for the search.

The search fetches each page it finds to show an excerpt. Browsers forbid that for local files, so
the search page loads all texts as a script.
"""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

_FILE = "search_texts.js"
_SCRIPT = "search_files.js"
_texts: dict[str, str] = {}


def setup(app: Sphinx) -> dict[str, bool]:
    """Collect the text of each page, and write them at the end."""
    app.connect("html-page-context", _collect)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def _collect(app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    if page == "search":
        app.add_js_file(_FILE)
        app.add_js_file(_SCRIPT)
    elif body := context.get("body"):
        _texts[page] = _text_of(body)


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        text = json.dumps(_texts, ensure_ascii=False, sort_keys=True)
        Path(app.outdir, "_static", _FILE).write_text(f"const PAGE_TEXTS = {text};\n", "utf-8")


class _Text(HTMLParser):
    """Parser that collects the text of a page without heading links."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._is_mark = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_mark = tag == "a" and "headerlink" in (dict(attrs).get("class") or "")

    def handle_endtag(self, tag: str) -> None:
        del tag
        self._is_mark = False

    def handle_data(self, data: str) -> None:
        if not self._is_mark:
            self.parts.append(data)


def _text_of(body: str) -> str:
    parser = _Text()
    parser.feed(body)
    return " ".join("".join(parser.parts).split())
