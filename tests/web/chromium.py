"""Debian's chromium, driven by playwright, whose own browsers are not needed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run the browser for the length of a block."""
    with sync_playwright() as playwright:
        # In a container there is no sandbox to be had; it opens pages of these tests alone.
        browser = playwright.chromium.launch(
            executable_path=PROGRAM, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            browser.close()


class Window:
    """A window of the browser, and what went wrong in it.

    faults: errors of scripts, what the policy of the page has stopped, answers that failed.
    """

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
        self.faults: list[str] = []
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.faults.append(message.text)


@contextmanager
def window(browser: Browser, **options: int | bool | str) -> Iterator[Window]:
    """Open a window for the length of a block; nothing may have gone wrong in it."""
    opened = Window(browser, **options)  # type: ignore[arg-type]
    try:
        yield opened
        assert opened.faults == []
    finally:
        opened.context.close()
