"""Links that differ between the site and a code host.

A link to sql/CONTRACT.md leads to the page of the routine. A link to a folder, or to a page that is
not on the site, becomes plain text.
"""

import posixpath
import re

from sphinx.application import Sphinx

from docs.reference import FOLDER, TABLES

CONTRACT = "sql/CONTRACT.md"

_LINK = re.compile(r"\[([^\[\]]+)\]\(([^()#:\s]+)(?:#([\w-]+))?\)")


def setup(app: Sphinx) -> dict[str, bool]:
    """Change the links of each page before Sphinx reads it."""
    app.connect("source-read", _lead)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _lead(app: Sphinx, page: str, source: list[str]) -> None:
    folder = posixpath.dirname(page)

    def led(link: re.Match[str]) -> str:
        text, target, heading = link.groups()
        path = posixpath.normpath(posixpath.join(folder, target))
        if path == CONTRACT:
            name = TABLES.get(heading, heading) if heading else "index"
            return f"[{text}]({posixpath.relpath(f'{FOLDER}/{name}.md', folder)})"
        file = app.srcdir / path
        is_page = path.removesuffix(".md") in app.env.found_docs
        is_named = file.is_dir() or (file.suffix == ".md" and file.exists() and not is_page)
        return text if is_named else link[0]

    source[0] = _LINK.sub(led, source[0])
