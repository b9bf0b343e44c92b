"""Authorization, cross-site requests and security headers."""

import base64
import stat
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.authentication import SimpleUser
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Mount
from starlette.testclient import TestClient

import rowq
import rowq.web
from rowq.engines.sockets import TimedOutError
from rowq.session import OwnedSession
from rowq.web import passwords
from rowq.web.passwords import BadPasswordFile, Passwords, ProxyUser, write_password
from tests.helpers.worker_queue import MakeQueue
from tests.web.browsing import OWN, Browser, browsing

NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "http://testserver", "Sec-Fetch-Site": "none"}, 200),
        ({}, 200),
        ({"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://testserver:81"}, 403),
        ({"Origin": "http://testserver.evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "http://[x"}, 403),
        ({"Origin": "http://testserver", "Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": ""}, 403),
    ],
)
def test_form_from_other_site_is_refused(
    browser: Browser, made: str, connection: Any, headers: dict[str, str], status: int
) -> None:
    assert browser.post("/queue/pause", headers=headers, queue=made).status_code == status
    assert rowq.Queue(connection).queue_stats(made)[0].is_paused is (status == 200)


@pytest.mark.parametrize("token", ["", "x", "é" * 64, None])
def test_form_with_wrong_token_is_refused(
    browser: Browser, made: str, connection: Any, token: str | None
) -> None:
    other = rowq.web.create_app(NOWHERE, authorize=lambda _: "act").state.site.signer.token
    answer = browser.post("/queue/pause", token=other if token is None else token, queue=made)
    assert answer.status_code == 403
    assert not rowq.Queue(connection).queue_stats(made)[0].is_paused


def test_only_post_makes_changes(browser: Browser, made: str) -> None:
    for path in ("/queue/pause", "/queue/drop", "/batch", "/message/reset", "/health/maintain"):
        assert browser.get(path, queue=made, token=browser.token()).status_code in {404, 405}
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert browser.client.request(method, "/queue/pause").status_code == 405


def test_form_too_large_or_not_utf8_is_refused(browser: Browser) -> None:
    assert browser.client.post("/queue/pause", content=b"%ff=1", headers=OWN).status_code == 400
    assert browser.client.post("/queue/pause", content=b"\xff", headers=OWN).status_code == 400
    large = b"a=" + b"b" * (17 * 1024 * 1024)
    assert browser.client.post("/queue/pause", content=large, headers=OWN).status_code == 413


def test_responses_have_security_headers(browser: Browser) -> None:
    answers = [
        browser.get(path)
        for path in ("/", "/nowhere", "/static/rowq.js", "/message", "/metrics", "/live", "/ready")
    ]
    answers.append(browser.post("/queue/pause", headers={"Origin": "http://evil.example"}))
    for answer in answers:
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self';")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"


def test_unknown_host_name_is_refused() -> None:
    app = rowq.web.create_app(
        NOWHERE,
        authorize=lambda _: "act",
        allow_hosts=["localhost", "Queues.example", "::1", "other.example:8443", "[::2]:8443"],
    )
    client = TestClient(app)
    for host, status in (
        ("localhost", 200), ("localhost:8700", 200), ("queues.EXAMPLE:1", 200), ("[::1]:8700", 200),
        ("other.example:8443", 200), ("[::2]:1", 200),
        ("evil.example", 421), ("localhost.evil.example", 421), ("", 421), ("[::1", 421),
    ):  # fmt: skip
        answer = client.get("/static/rowq.css", headers={"Host": host})
        assert answer.status_code == status, host
    assert client.get("/live", headers={"Host": "10.0.0.7:8700"}).status_code == 200


@pytest.mark.parametrize("name", ["", "http://queues.example", "[::1", ":8443"])
def test_create_app_refuses_invalid_host(name: str) -> None:
    with pytest.raises(rowq.InvalidArgument):
        rowq.web.create_app(NOWHERE, authorize=lambda _: "act", allow_hosts=[name])


def test_level_limits_access(database_url: str, make_queue: MakeQueue) -> None:
    queue = make_queue()
    number = queue.enqueue({"is": "xyzzySECRETxyzzy"}).message_id
    with browsing(database_url, level="no") as refused:
        for path in ("/", "/metrics", "/events", "/static/rowq.css"):
            assert refused.get(path).status_code == 403
        assert refused.get("/live").status_code == 200
    with browsing(database_url, level="look") as viewer:
        assert queue.name in viewer.page("/")
        assert '<form method="post"' not in viewer.page("/queue", name=queue.name)
        assert viewer.get("/message", queue=queue.name, id=number).status_code == 403
        assert viewer.get("/message/body", queue=queue.name, id=number).status_code == 403
        assert viewer.post("/queue/pause", queue=queue.name).status_code == 403
    with browsing(database_url, level="anything else") as refused:
        assert refused.get("/").status_code == 403


def test_bodies_and_errors_can_be_hidden(database_url: str, make_queue: MakeQueue) -> None:
    queue = make_queue(history_days=1)
    word = "xyzzySECRETxyzzy"
    number = queue.enqueue({"is": word}, headers={"h": word}, dedup_key=word).message_id
    (message,) = queue.dequeue_fast()
    error = f'Traceback (most recent call last):\n  File "x", line 1\nshop.NoStock: {word}'
    queue.fail_now(message.claim_id, error=error)
    with browsing(database_url, hide_bodies=True, hide_errors=True) as browser:
        pages = [
            browser.page("/message", queue=queue.name, id=number),
            browser.page("/dead", queue=queue.name),
            browser.page("/queue", name=queue.name),
        ]
        assert all(word not in page for page in pages)
        assert all("shop.NoStock" in page for page in pages[:2])
        assert browser.get("/message/body", queue=queue.name, id=number).status_code == 403
        found = browser.client.get(
            f"/queue/find?name={queue.name}&key={word}", follow_redirects=False
        )
        assert found.headers["Location"].endswith("id=0")


def basic(user: str, password: str) -> dict[str, str]:
    encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {encoded}"}


def test_password_file_authenticates_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "_COST", 2)
    file = tmp_path / "passwords"
    write_password(file, "anna", "wrong")
    write_password(file, "bert", "b:é")
    write_password(file, "anna", "right")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "right" not in file.read_text()
    assert len(file.read_text().splitlines()) == 2
    app = rowq.web.create_app(NOWHERE, authorize=Passwords(file))
    client = TestClient(app)
    for headers in (basic("anna", "right"), basic("bert", "b:é"), basic("anna", "right")):
        assert client.get("/static/rowq.css", headers=headers).status_code == 200
    for headers in (
        {}, basic("anna", "wrong"), basic("carl", "right"), basic("", ""),
        {"Authorization": "Basic"}, {"Authorization": "Basic !"}, {"Authorization": "Bearer x"},
        {"Authorization": "Basic " + "a" * 5000}, {"Authorization": "Basic /w=="},
    ):  # fmt: skip
        answer = client.get("/static/rowq.css", headers=headers)
        assert answer.status_code == 401, headers
        assert answer.headers["WWW-Authenticate"].startswith("Basic ")
    not_ascii = client.get("/static/rowq.css", headers={b"Authorization": b"Basic \xe9"})
    assert not_ascii.status_code == 401
    for bad in ("", "anna:plain\n", "anna:scrypt$00$00\n"):
        file.write_text(bad)
        with pytest.raises(BadPasswordFile):
            Passwords(file)
    with pytest.raises(BadPasswordFile):
        write_password(file, "a b", "x")


def test_failed_login_is_logged_and_waiting_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(passwords, "_COST", 2)
    file = tmp_path / "passwords"
    write_password(file, "anna", "right")
    login = Passwords(file)
    client = TestClient(rowq.web.create_app(NOWHERE, authorize=login))
    assert client.get("/static/rowq.css", headers=basic("anna", "right")).status_code == 200
    assert client.get("/static/rowq.css", headers=basic("anna\nx", "wrong")).status_code == 401
    assert caplog.messages == ["login of 'anna\\nx' from testclient: refused"]
    login._waiting["testclient"] = passwords._MOST_OF_AN_ADDRESS
    assert client.get("/static/rowq.css", headers=basic("anna", "other")).status_code == 503
    login._waiting.clear()
    others = {bytes([number]): passwords._Check() for number in range(passwords._MOST_WAITING)}
    login._checks.update(others)
    assert client.get("/static/rowq.css", headers=basic("anna", "other")).status_code == 503
    assert client.get("/static/rowq.css", headers=basic("anna", "right")).status_code == 200


def test_write_password_does_not_follow_link(tmp_path: Path) -> None:
    other = tmp_path / "other"
    (tmp_path / ".passwords.new").symlink_to(other)
    write_password(tmp_path / "passwords", "anna", "right")
    assert not other.exists()
    assert [one.name for one in tmp_path.iterdir()] == ["passwords"]


@pytest.mark.parametrize(
    ("peer", "proxies", "status"),
    [
        ("127.0.0.1", [], 200),
        ("::1", [], 200),
        ("10.0.0.2", [], 403),
        ("10.0.0.2", ["10.0.0.2"], 200),
        ("::ffff:10.0.0.2", ["10.0.0.0/24"], 200),
        ("127.0.0.1", ["10.0.0.2"], 403),
        ("nowhere", ["10.0.0.2"], 403),
    ],
)
def test_user_header_requires_trusted_proxy(peer: str, proxies: list[str], status: int) -> None:
    login = ProxyUser("X-User", proxies) if proxies else ProxyUser("X-User")
    app = rowq.web.create_app(NOWHERE, authorize=login)
    client = TestClient(app, client=(peer, 50000))
    assert client.get("/static/rowq.css", headers={"X-User": "anna"}).status_code == status


def test_proxy_must_pass_exactly_one_user() -> None:
    app = rowq.web.create_app(NOWHERE, authorize=ProxyUser("X-User"))
    client = TestClient(app, client=("127.0.0.1", 50000))
    assert client.get("/static/rowq.css", headers={"X-User": "anna"}).status_code == 200
    for names in ([], [("X-User", "")], [("X-User", "anna"), ("X-User", "root")]):
        assert client.get("/static/rowq.css", headers=names).status_code == 403


def test_mounted_page_uses_login_of_application(
    database_url: str, made: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def authorize(request: Request) -> Any:
        if request.headers.get("X-Key") != "open":
            raise HTTPException(401, "log in first")
        request.scope["user"] = SimpleUser("anna\nforged line")
        return "act"

    page = rowq.web.create_app(database_url, authorize=authorize, title="<prod>")
    with TestClient(Starlette(routes=[Mount("/a b/rowq", page)])) as client:
        answer = client.get("/a b/rowq/")
        assert (answer.status_code, answer.text) == (401, "log in first\n")
        client.headers["X-Key"] = "open"
        text = client.get("/a b/rowq/").text
        assert "&lt;prod&gt;" in text
        assert 'href="/a%20b/rowq/static/rowq.css"' in text
        assert f'href="/a%20b/rowq/queue?name={made}"' in text
        assert client.get("/a b/rowq/static/rowq.css").status_code == 200
        with caplog.at_level("INFO", "rowq.web"):
            done = client.post(
                "/a b/rowq/queue/pause",
                data={"token": page.state.site.signer.token, "queue": made},
                headers=OWN,
            )
        assert done.url.path == "/a b/rowq/queue"
        assert f"{made}: paused" in done.text
    (line,) = [one.getMessage() for one in caplog.records if one.name == "rowq.web"]
    assert line == f"'anna\\nforged line' on database: pause_queue '{made}': {made}: paused"
    page.state.site.end()


def test_several_databases_have_separate_pages(database_url: str, made: str) -> None:
    with browsing({"prod": database_url, "test.2": database_url}) as browser:
        index = browser.page("/")
        assert 'href="/db/prod/"' in index
        assert f"/db/test.2/queue?name={made}" in browser.page("/db/test.2/")
        page = browser.page("/db/prod/queue", name=made)
        assert 'data-events="/db/prod/events?claims=1"' in page
        assert "paused" in browser.send(page, "/queue/pause").text
        assert browser.get("/queue", name=made).status_code == 404
        assert "data-events" not in index
        assert "<nav" not in index
        found = browser.client.get("/db/prod", follow_redirects=False)
        assert found.headers["Location"] == "prod/"
        assert browser.get("/db/prod/queue/").status_code == 404
    for wrong in ({}, {"a/b": database_url}, {"..": database_url}):
        with pytest.raises(rowq.InvalidArgument):
            rowq.web.create_app(wrong, authorize=lambda _: "act")
    with pytest.raises(rowq.InvalidArgument):
        rowq.web.create_app(database_url, authorize=lambda _: "act", interval=0)
    with pytest.raises(rowq.EngineUnknown):
        rowq.web.create_app("nothing://here", authorize=lambda _: "act")


@pytest.mark.slow("waits for time limits")
def test_unreachable_database_does_not_hide_others(
    database_url: str, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with browsing({"prod": database_url, "bad": NOWHERE, "slow": database_url}) as browser:
        site = browser.client.app.state.site  # type: ignore[attr-defined]

        def hang(**_: object) -> None:
            raise TimedOutError("it hangs")

        monkeypatch.setattr(site.samplers["slow"], "sample", hang)
        index = browser.page("/")
        assert "it hangs" in index
        assert 'href="/db/prod/"' in index
        assert made in browser.page("/db/prod/")


def test_transient_error_keeps_rights(
    database_url: str, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = OwnedSession.call

    def lost(self: OwnedSession, routine: str, *arguments: Any) -> Any:
        if routine == "get_message":
            raise rowq.ConnectionLost("gone for a moment")
        return before(self, routine, *arguments)

    with browsing(database_url) as browser:
        monkeypatch.setattr(OwnedSession, "call", lost)
        assert browser.get("/").status_code == 503
        monkeypatch.setattr(OwnedSession, "call", before)
        assert f"Pause {made}" in browser.page("/")


def test_notice_requires_signature(browser: Browser) -> None:
    assert 'class="said"' not in browser.page("/", said="e.vil")
    assert 'class="said"' not in browser.page("/", said="!")
    sealed = browser.client.app.state.site.signer.sealed("done <b>")  # type: ignore[attr-defined]
    assert "done &lt;b&gt;" in browser.page("/", said=sealed)
    assert 'class="said"' not in browser.page("/", said=f"x{sealed}")


@pytest.mark.slow("waits for time limits")
def test_unreachable_database_is_reported_without_password() -> None:
    url = "postgresql://nobody:xyzzySECRETxyzzy@127.0.0.1:1/nowhere"
    with browsing(url) as browser:
        answer = browser.get("/")
        assert answer.status_code == 503
        assert "xyzzySECRETxyzzy" not in answer.text
        assert browser.get("/ready").status_code == 503
        assert browser.get("/live").status_code == 200
