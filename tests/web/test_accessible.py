"""Accessibility of the pages, checked by axe (WCAG 2.1, A and AA)."""

from __future__ import annotations

import json
from typing import Any

import playwright.sync_api as play
import pytest

import rowq
from tests.engines.base import Connection
from tests.helpers.npm import package
from tests.web.chromium import window
from tests.web.scenes import shop
from tests.web.test_in_browser import address, browser, pages_of
from tests.web.test_in_browser import pytestmark as marks

pytestmark = [pytest.mark.slow("a browser visits all pages", ci=False), *marks]

__all__ = ["address", "browser"]

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
FOUND = f"""async () => (await axe.run({json.dumps(RULES)})).violations.map(
    violation => [violation.id, ...violation.nodes.map(node => node.html)])"""


OPENED = "document.querySelectorAll('details').forEach(one => one.open = true)"
FAULT = "document.querySelector('main').insertAdjacentHTML('beforeend', '<button></button>')"


@pytest.mark.parametrize("width", [1200, 360])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_have_no_accessibility_violations(
    browser: play.Browser,
    address: str,
    connection: Connection,
    queue_name: str,
    width: int,
    dark: bool,
) -> None:
    script = (package("axe-core") / "axe.min.js").read_text(encoding="utf-8")
    queue = rowq.Queue(connection)
    names = shop(queue, queue_name[-8:])
    violations: dict[str, Any] = {}
    with window(browser, width=width, dark=dark) as one:
        for path in pages_of(queue, names):
            one.page.goto(address + path)
            one.page.evaluate(OPENED)
            one.page.evaluate(script)
            if found := one.page.evaluate(FOUND):
                violations[path] = found
        assert violations == {}
        one.page.evaluate(FAULT)
        assert one.page.evaluate(FOUND) == [["button-name", "<button></button>"]]
