"""What is shown never holds a password, and is not spoilt by one that is also a word."""

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
    """Leave no URL of a test to the others."""
    database._seen_urls.clear()
    yield
    database._seen_urls.clear()


def shown(url: str, text: str) -> str:
    """Return what is shown of a text when only this URL was given."""
    database._seen_urls.clear()
    remember_url(url)
    return hide_secrets(text)


@given(PASSWORDS)
def test_a_url_is_shown_with_its_password_blotted_out_and_all_else(password: str) -> None:
    written = quote(password, safe="")
    url = f"postgresql://me:{written}@host:5432/shop"
    told = shown(url, f"{url} is not to be had: {url}")
    assert told == f"{without_password(url)} is not to be had: {without_password(url)}"
    assert told.count("me:***@host:5432/shop") == 2


@given(PASSWORDS.filter(lambda one: len(one) >= 8), st.sampled_from(["as written", "as meant"]))
def test_a_long_password_is_shown_nowhere(password: str, form: str) -> None:
    written = quote(password, safe="")
    url = f"postgresql://me:{written}@host/shop"
    secret = written if form == "as written" else password
    for text in (f"a {secret} b", f"x{secret}y", f"/{secret}/", f"'{secret}'", secret):
        assert secret not in shown(url, text)
    parameter = f"postgresql://me@host/shop?sslpassword={written}"
    assert secret not in shown(parameter, f"x{secret}y")


@given(PASSWORDS)
def test_a_password_is_not_shown_where_one_stands_though_its_url_is_unknown(password: str) -> None:
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
def test_a_password_that_is_also_a_word_spoils_no_message(url: str) -> None:
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
def test_a_long_password_that_names_the_user_or_the_database_spoils_none_either(url: str) -> None:
    assert shown(url, WORDS) == WORDS


def test_a_password_with_an_at_sign_is_not_shown_in_part() -> None:
    for password in ("se@cret", "@@", "a:b@c", "pa/ss@word"):
        url = f"postgresql://me:{password}@host/app"
        assert shown(url, f"cannot use {url}") == "cannot use postgresql://me:***@host/app"
        database._seen_urls.clear()
        assert hide_secrets(f"cannot use {url}") == "cannot use postgresql://me:***@host/app"


def test_the_example_of_a_url_is_shown_whole_and_nothing_that_only_begins_like_it(
    run_without_database: Run,
) -> None:
    done = run_without_database("stats", url="host=x dbname=y password=secret")
    assert f"such as {EXAMPLE}\n" in done.err
    database._seen_urls.clear()
    assert "me" not in hide_secrets(f"{EXAMPLE}:me@there")


def test_a_command_s_error_keeps_its_words_though_the_password_is_one_of_them(
    run_without_database: Run,
) -> None:
    done = run_without_database("stats", url="postgresql://refused:refused@127.0.0.1:1/refused")
    assert "refused" in done.err
    assert "***" not in done.err
