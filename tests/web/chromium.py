"""Debian's chromium, driven by playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run the browser for a block."""
    with sync_playwright() as playwright:
        # Containers have no sandbox; the browser opens only pages of these tests.
        browser = playwright.chromium.launch(
            executable_path=PROGRAM, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            browser.close()


class Window:
    """A window of the browser, and its errors: of scripts, policy and requests."""

    def __init__(
        self,
        browser: Browser,
        *,
        width: int = 1200,
        height: int = 900,
        dark: bool = False,
        zone: str | None = None,
    ) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            timezone_id=zone,
        )
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("console", self._record)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _record(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.errors.append(message.text)


@contextmanager
def window(browser: Browser, **options: int | bool | str) -> Iterator[Window]:
    """Open a window for a block, and check that it has no errors."""
    opened = Window(browser, **options)  # type: ignore[arg-type]
    try:
        yield opened
        assert opened.errors == []
    finally:
        opened.context.close()
