"""Take the README's screenshot of the page: python -m tests.web.pictures [DIRECTORY].

It needs Debian's chromium and starts a private PostgreSQL. With a directory it takes screenshots of
all pages, light and dark, wide and narrow.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import rowq
import rowq.web
from rowq.tools.local_postgres.server import LocalPostgres
from rowq.tools.migrate import migrate
from rowq.web.serving import serving
from tests.web.chromium import chromium, window
from tests.web.scenes import shop

PICTURE = Path(__file__).parents[2] / "python_client" / "rowq-web.png"


def main(directory: Path | None) -> None:
    """Take one screenshot or all of them."""
    with (
        TemporaryDirectory() as home,
        LocalPostgres(Path(home)) as server,
        chromium() as browser,
    ):
        migrate(server.url)
        with rowq.connect(server.url) as queue:
            names = shop(queue)
            dead = queue.list_dead(names["orders"], max_messages=1, before_message_id=2**63 - 1)
        app = rowq.web.create_app(server.url, authorize=lambda _: "act", title="shop", interval=0.2)
        with serving(app, "127.0.0.1", 0) as served:
            pages = {
                "dead": "dead?queue=orders",
                "overview": "",
                "queue": "queue?name=orders",
                "message": f"message?queue=orders&id={dead[0].message_id}",
                "workers": "workers",
                "schedules": "schedules",
                "schedule": "schedule?queue=reports&name=nightly",
                "topics": "topics",
                "health": "health",
            }
            if directory is None:
                with window(browser, width=1000, height=640) as shown:
                    shown.page.goto(served.address + pages["dead"])
                    shown.page.screenshot(path=PICTURE)
                return
            for width, dark in ((1200, False), (1200, True), (360, False), (360, True)):
                for name, path in pages.items():
                    with window(browser, width=width, height=800, dark=dark) as shown:
                        shown.page.goto(served.address + path)
                        shown.page.wait_for_timeout(1500 if name in {"queue", "overview"} else 100)
                        file = directory / f"{name}-{width}{'-dark' if dark else ''}.png"
                        shown.page.screenshot(path=file, full_page=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
