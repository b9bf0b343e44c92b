"""Reads docs/monitoring/grafana.json."""

import json
from collections.abc import Iterator
from typing import Any

from tests.static.sources import ROOT

MONITORING = ROOT / "docs" / "monitoring"
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "grafana.json").read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]


def expressions() -> Iterator[tuple[str, str]]:
    """Yield title and expression of each panel."""
    for panel in PANELS:
        yield from ((panel["title"], target["expr"]) for target in panel["targets"])
