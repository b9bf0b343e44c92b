"""PyMySQL arguments of mysql:// and mariadb:// URLs."""

import ssl
from pathlib import Path

import pytest

import rowq
from rowq.engines.mysql.url import connection_parameters

PLAIN = {"host": "host", "port": 3306, "connect_timeout": 10}


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("mysql://host", PLAIN),
        ("mariadb://host:3307/", PLAIN | {"port": 3307}),
        ("mysql:///db", PLAIN | {"host": "localhost", "database": "db"}),
        ("mysql://[::1]/a%20b", PLAIN | {"host": "::1", "database": "a b"}),
        ("mysql://me:p%40ss@host", PLAIN | {"user": "me", "password": "p@ss"}),
        ("mysql://host?connect-timeout=3", PLAIN | {"connect_timeout": 3}),
        (
            "mysql:///?unix_socket=/run/my%20sql.sock",
            PLAIN | {"host": "localhost", "unix_socket": "/run/my sql.sock"},
        ),
        ("mysql://host?ssl-mode=disabled", PLAIN | {"ssl_disabled": True}),
    ],
)
def test_url_sets_connection_parameters(url: str, meant: dict[str, object]) -> None:
    assert connection_parameters(url) == meant


@pytest.mark.parametrize(
    ("mode", "verifies", "checks_name"),
    [
        ("required", ssl.CERT_NONE, False),
        ("verify_ca", ssl.CERT_REQUIRED, False),
        ("VERIFY_IDENTITY", ssl.CERT_REQUIRED, True),
    ],
)
def test_ssl_mode_sets_certificate_checks(
    mode: str, verifies: ssl.VerifyMode, checks_name: bool
) -> None:
    context = connection_parameters(f"mysql://host?ssl-mode={mode}")["ssl"]
    assert (context.verify_mode, context.check_hostname) == (verifies, checks_name)


def test_unknown_ssl_mode_is_refused() -> None:
    with pytest.raises(rowq.CannotConnect, match="ssl-mode must be one of disabled, required"):
        connection_parameters("mysql://host?ssl-mode=perhaps")


def test_missing_certificate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(rowq.CannotConnect, match="cannot read the certificates"):
        connection_parameters(f"mysql://host?ssl-ca={tmp_path}/none.pem")
