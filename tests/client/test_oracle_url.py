"""python-oracledb arguments of oracle:// URLs."""

import oracledb
import pytest

import rowq
from rowq.engines.oracle.url import connection_parameters, owner_of

PLAIN = {"host": "host", "port": 1521, "tcp_connect_timeout": 10.0, "expire_time": 1}


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("oracle://host", PLAIN),
        ("oracle://host:1522/", PLAIN | {"port": 1522}),
        ("oracle:///XEPDB1", PLAIN | {"host": "localhost", "service_name": "XEPDB1"}),
        ("oracle://me:p%40ss@host", PLAIN | {"user": "me", "password": "p@ss"}),
        ("oracle://host?connect-timeout=3", PLAIN | {"tcp_connect_timeout": 3.0}),
        ("oracle://host?expire_time=0", PLAIN | {"expire_time": 0}),
        ("oracle://host?expire-time=5", PLAIN | {"expire_time": 5}),
        ("oracle://host?protocol=tcps", PLAIN | {"protocol": "tcps"}),
        ("oracle://host?owner=queues", PLAIN),
    ],
)
def test_url_sets_connection_parameters(url: str, meant: dict[str, object]) -> None:
    assert connection_parameters(url) == meant


def test_url_sets_the_owner() -> None:
    assert owner_of("oracle://host/service?owner=queues") == "QUEUES"
    assert owner_of("oracle://host/service") is None


def test_unknown_protocol_is_refused() -> None:
    with pytest.raises(rowq.CannotConnect, match="protocol must be one of tcp, tcps"):
        connection_parameters("oracle://host?protocol=ipc")


@pytest.mark.parametrize("given", ["connect_timeout=soon", "expire_time=1.5", "expire_time=never"])
def test_non_numeric_timeout_is_refused(given: str) -> None:
    with pytest.raises(rowq.CannotConnect, match="malformed URL"):
        connection_parameters(f"oracle://host?{given}")


def test_driver_accepts_url_parameters() -> None:
    url = "oracle://me:secret@host/service?protocol=tcps&connect_timeout=3"
    parameters = oracledb.ConnectParams(**connection_parameters(url))
    assert (parameters.expire_time, parameters.tcp_connect_timeout) == (1, 3.0)
