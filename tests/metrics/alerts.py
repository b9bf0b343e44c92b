"""Reads docs/monitoring/alerts.yml."""

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.metrics.dashboard import MONITORING

ALERTS = MONITORING / "alerts.yml"


def read(path: Path) -> Any:
    """Return a parsed YAML file."""
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


def rules() -> list[dict[str, Any]]:
    """Return all alerts."""
    return [rule for group in read(ALERTS)["groups"] for rule in group["rules"]]
