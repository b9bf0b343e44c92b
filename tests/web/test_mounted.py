"""The page mounted in a FastAPI application, which authorizes its users."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from starlette.applications import Starlette

from tests.engines.base import wait_until
from tests.helpers.worker_queue import MakeQueue
from tests.web.browsing import OWN, Browser, elements, notice
from tests.web.mounted import PATH, application
from tests.web.test_live import Stream

SHOP = {"X-Team": "shop"}


@pytest.fixture
def mounted(database_url: str) -> Iterator[tuple[Browser, Starlette]]:
    """Return a browser of a user who may act, and the mounted page."""
    app, page = application(database_url)
    with TestClient(app, headers=SHOP) as client:
        yield Browser(client), page


def test_urls_of_mounted_page_are_below_its_path(
    mounted: tuple[Browser, Starlette], make_queue: MakeQueue
) -> None:
    queue, (browser, _) = make_queue(), mounted
    queue.fill(1)
    followed = set()
    for path in ("/", f"/queue?name={queue.name}", f"/dead?queue={queue.name}", "/health"):
        for _, attributes in elements(browser.page(PATH + path)):
            for name in (
                "href",
                "src",
                "action",
                "hx-get",
                "hx-post",
                "data-events",
                "data-points",
            ):
                address = attributes.get(name)
                if address and not address.startswith(("#", "?")):
                    assert address.startswith(f"{PATH}/"), (path, name, address)
                    followed.add((name, address))
    fetched = [address for name, address in followed if name in {"href", "src", "hx-get"}]
    assert len(fetched) > 10
    for address in fetched:
        assert browser.get(address).status_code == 200, address
    answer = browser.get(f"{PATH}/static/rowq.css")
    assert answer.headers["Content-Type"].startswith("text/css")
    assert browser.page(PATH).startswith("<!doctype html>")
    assert browser.page("/orders/7") == "7"


def test_form_of_mounted_page_requires_token(
    mounted: tuple[Browser, Starlette], make_queue: MakeQueue
) -> None:
    queue, (browser, _) = make_queue(), mounted
    page = browser.page(f"{PATH}/queue", name=queue.name)
    answer = browser.send(page, f"{PATH}/queue/pause", queue=queue.name)
    assert "paused" in notice(answer.text)
    assert answer.url.path == f"{PATH}/queue"
    assert queue.queue_stats()[0].is_paused
    page = answer.text
    resume = f"{PATH}/queue/resume"
    assert browser.send(page, resume, token="another").status_code == 403
    alien = {**OWN, "Origin": "http://elsewhere"}
    assert browser.send(page, resume, headers=alien).status_code == 403
    assert queue.queue_stats()[0].is_paused


def test_application_authorizes_users(mounted: tuple[Browser, Starlette], made: str) -> None:
    client = mounted[0].client
    unknown = client.get(f"{PATH}/", headers={"X-Team": ""})
    assert (unknown.status_code, unknown.headers["WWW-Authenticate"]) == (401, "Team")
    viewed = client.get(f"{PATH}/queue?name={made}", headers={"X-Team": "press"})
    assert viewed.status_code == 200
    assert 'method="post"' not in viewed.text
    refused = client.post(f"{PATH}/queue/pause", headers={"X-Team": "press", **OWN})
    assert refused.status_code == 403
    assert client.get(f"{PATH}/live", headers={"X-Team": ""}).status_code == 200


def test_page_ends_and_restarts_with_application(database_url: str, made: str) -> None:
    app, page = application(database_url)
    for _ in range(2):
        with TestClient(app, headers=SHOP) as client:
            assert made in client.get(f"{PATH}/").text
            sampler = page.state.site.samplers["database"]
            assert not sampler.is_full
        assert sampler.is_full
        assert not page.state.site.databases["database"]._idle


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signals; to run it: Linux")
@pytest.mark.usefixtures("made")
def test_server_shutdown_does_not_wait_for_streams(database_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}/events"
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.web.mounted", str(listener.fileno())],
            pass_fds=[listener.fileno()],
            env={**os.environ, "ROWQ_URL": database_url},
        )
        try:
            stream = Stream(address, **SHOP)
            wait_until(lambda: "queues" in stream.received, "an event arrives")
            began_at = time.monotonic()
            server.terminate()
            assert server.wait(30) == -signal.SIGTERM
            assert time.monotonic() - began_at < 10
            wait_until(lambda: stream.has_ended, "the stream ends")
        finally:
            server.kill()
            server.wait()
