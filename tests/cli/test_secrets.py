"""Passwords are masked, and a password that is also a word masks nothing else."""

from __future__ import annotations

import string
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowq.engines import EXAMPLE, without_password
from rowq.tools.console import database
from rowq.tools.console.database import hide_secrets, remember_url
from tests.cli.conftest import Run

WORDS = "connection failed: database app does not exist; permission denied for function dequeue"
PASSWORDS = st.text(string.ascii_letters + string.digits + string.punctuation + "é", min_size=1)


@pytest.fixture(autouse=True)
def forget_urls() -> Iterator[None]:
    """Forget the URLs of a test."""
    database._seen_urls.clear()
    yield
    database._seen_urls.clear()


def shown(url: str, text: str) -> str:
    """Return a text as shown if this is the only URL."""
    database._seen_urls.clear()
    remember_url(url)
    return hide_secrets(text)


@given(PASSWORDS)
def test_password_in_url_is_masked(password: str) -> None:
    written = quote(password, safe="")
    url = f"postgresql://me:{written}@host:5432/shop"
    text = shown(url, f"{url} failed: {url}")
    assert text == f"{without_password(url)} failed: {without_password(url)}"
    assert text.count("me:***@host:5432/shop") == 2


@given(PASSWORDS.filter(lambda one: len(one) >= 8), st.sampled_from(["encoded", "decoded"]))
def test_long_password_is_masked_anywhere(password: str, form: str) -> None:
    written = quote(password, safe="")
    url = f"postgresql://me:{written}@host/shop"
    secret = written if form == "encoded" else password
    for text in (f"a {secret} b", f"x{secret}y", f"/{secret}/", f"'{secret}'", secret):
        assert secret not in shown(url, text)
    parameter = f"postgresql://me@host/shop?sslpassword={written}"
    assert secret not in shown(parameter, f"x{secret}y")


@given(PASSWORDS)
def test_password_is_masked_by_position(password: str) -> None:
    written = quote(password, safe="")
    database._seen_urls.clear()
    assert hide_secrets(f"no postgresql://me:{written}@host/shop") == (
        "no postgresql://me:***@host/shop"
    )
    escaped = password.replace("\\", "\\\\").replace("'", "\\'")
    assert hide_secrets(f"user='me' password='{escaped}' host='h'") == (
        "user='me' password=*** host='h'"
    )
    braced = password.replace("}", "}}")
    assert hide_secrets(f"UID={{me}};PWD={{{braced}}};DATABASE=x") == "UID={me};PWD=***;DATABASE=x"


@pytest.mark.parametrize("url", ["app:app", "me:o", "me:app", "me:rowq", "me:denied", "denied:x"])
def test_short_password_masks_no_words(url: str) -> None:
    assert shown(f"postgresql://{url}@host/app", WORDS) == WORDS


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://connection:connection@host/app",
        "postgresql://me:connection@host/connection",
        "postgresql://host/connection?user=me&password=connection",
        "postgresql:///app?user=connection&password=connection",
    ],
)
def test_password_equal_to_user_or_database_masks_no_words(url: str) -> None:
    assert shown(url, WORDS) == WORDS


def test_password_with_at_sign_is_masked_completely() -> None:
    for password in ("se@cret", "@@", "a:b@c", "pa/ss@word"):
        url = f"postgresql://me:{password}@host/app"
        assert shown(url, f"cannot use {url}") == "cannot use postgresql://me:***@host/app"
        database._seen_urls.clear()
        assert hide_secrets(f"cannot use {url}") == "cannot use postgresql://me:***@host/app"


def test_example_url_is_not_masked(
    run_without_database: Run,
) -> None:
    done = run_without_database("stats", url="host=x dbname=y password=secret")
    assert f"such as {EXAMPLE}\n" in done.err
    database._seen_urls.clear()
    assert "me" not in hide_secrets(f"{EXAMPLE}:me@there")


def test_error_keeps_words_equal_to_short_password(
    run_without_database: Run,
) -> None:
    done = run_without_database("stats", url="postgresql://refused:refused@127.0.0.1:1/refused")
    assert "refused" in done.err
    assert "***" not in done.err
