"""A simulated browser that reads pages and submits their forms."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

from starlette.testclient import TestClient

import rowq.web

OWN = {"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}
"""Headers of a browser that submits a form of the page."""


_ABOUT = {"queue", "do", "scope", "cause"}


class _Forms(HTMLParser):
    """Collects the forms and elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[tuple[str, dict[str, str]]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._is_inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag == "form" and found.get("method") == "post":
            self.forms.append((found["action"] or "", {}))
            self._is_inside = True
        is_field = tag == "input" and found.get("type") != "checkbox"
        if self._is_inside and is_field and found.get("name"):
            self.forms[-1][1][found["name"] or ""] = found.get("value") or ""

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = self._is_inside and tag != "form"


class Browser:
    """A user's access to the page of a database."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def get(self, path: str, **query: Any) -> Any:
        """Return the response to a GET request."""
        return self.client.get(f"{path}?{urlencode(query)}" if query else path)

    def page(self, path: str, **query: Any) -> str:
        """Return a page that must exist."""
        answer = self.get(path, **query)
        assert answer.status_code == 200, (path, answer.text)
        return str(answer.text)

    def token(self) -> str:
        """Return the token of forms."""
        return str(self.client.app.state.site.signer.token)  # type: ignore[attr-defined]

    def post(self, path: str, headers: Any = OWN, **fields: Any) -> Any:
        """Return the response to a form, which need not be on a page."""
        body = urlencode({"token": self.token(), **fields}, doseq=True)
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.client.post(path, content=body, headers={**kind, **headers})

    def send(self, page: str, action: str, *, headers: Any = OWN, **fields: Any) -> Any:
        """Submit the form of a page with this action and subject."""
        for path, found in forms(page):
            same = all(
                found.get(name, value) == value for name, value in fields.items() if name in _ABOUT
            )
            if path.endswith(action) and same:
                body = urlencode({**found, **fields}, doseq=True)
                kind = {"Content-Type": "application/x-www-form-urlencoded"}
                return self.client.post(path, content=body, headers={**kind, **headers})
        raise AssertionError(f"no form {action} with {fields}: {forms(page)}")


def forms(page: str) -> list[tuple[str, dict[str, str]]]:
    """Return the forms of a page: their actions and fields."""
    return _read(page).forms


def elements(page: str) -> list[tuple[str, dict[str, str | None]]]:
    """Return the elements of a page with their attributes."""
    return _read(page).tags


def _read(page: str) -> _Forms:
    parser = _Forms()
    parser.feed(page)
    return parser


def notice(page: str) -> str:
    """Return the result or error shown on a page."""
    found = re.search(r'<p class="(?:said|bad)" role="(?:status|alert)">(.*?)</p>', page, re.DOTALL)
    assert found, page
    return found[1]


@contextmanager
def browsing(url: Any, level: str = "act", **options: Any) -> Iterator[Browser]:
    """Open the page of a database for a user with a level."""
    app = rowq.web.create_app(url, authorize=lambda _: level, **options)  # type: ignore[arg-type, return-value]
    with TestClient(app, follow_redirects=True) as client:
        yield Browser(client)
    app.state.site.end()
