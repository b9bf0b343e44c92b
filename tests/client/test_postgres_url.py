"""prepare_threshold in postgresql:// URLs."""

from collections.abc import Mapping
from typing import Any

import psycopg
import pytest

import rowq


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """Return the driver's arguments; do not connect."""
    parameters: dict[str, Any] = {}

    def connect(**given: Any) -> None:
        parameters.update(given)
        raise psycopg.OperationalError("no server")

    monkeypatch.setattr(psycopg, "connect", connect)
    return parameters


@pytest.mark.parametrize(
    ("query", "threshold"),
    [
        ("prepare_threshold=none", None),
        ("prepare_threshold=0&application_name=shop", 0),
        ("application_name=shop&prepare_threshold=7", 7),
    ],
)
def test_prepare_threshold_is_passed_to_the_driver(
    asked: Mapping[str, Any], query: str, threshold: int | None
) -> None:
    with pytest.raises(rowq.CannotConnect):
        rowq.connect(f"postgresql://host/shop?{query}")
    assert asked["prepare_threshold"] == threshold
    assert asked["dbname"] == "shop"
    assert asked.get("application_name", "shop") == "shop"


def test_prepare_threshold_defaults_to_the_driver(asked: Mapping[str, Any]) -> None:
    with pytest.raises(rowq.CannotConnect):
        rowq.connect("postgresql://host/shop")
    assert "prepare_threshold" not in asked


@pytest.mark.parametrize("value", ["", "-1", "never", "1.5"])
def test_invalid_prepare_threshold_is_refused(value: str) -> None:
    with pytest.raises(rowq.CannotConnect, match="prepare_threshold must be a number or none"):
        rowq.connect(f"postgresql://host/shop?prepare_threshold={value}")
