"""Alerts fire as specified; alerts and dashboard use exported metrics."""

import re
from collections import Counter
from itertools import combinations
from typing import Any

import pytest

from rowq.tools.metrics.queues import queue_metrics
from rowq.worker.meter import Measures
from rowq.worker.metrics.worker import WorkerCollector
from tests.metrics.alerts import ALERTS, read, rules
from tests.metrics.dashboard import DASHBOARD, MONITORING, PANELS, expressions
from tests.metrics.promtool import promtool
from tests.static.sources import ROOT, unit_text

CASES = ROOT / "tests" / "metrics" / "alerts_test.yml"


class IdleWorker:
    """A worker without measures."""

    def measures(self) -> Measures:
        """Return empty measures."""
        return Measures()


def exported() -> set[str]:
    """Return the names of all exported series."""
    families = [*queue_metrics(None), *WorkerCollector("orders", IdleWorker()).collect()]
    suffixes = {
        "counter": ["_total"],
        "histogram": ["_bucket", "_count", "_sum"],
        "info": ["_info"],
    }
    return {
        f"{family.name}{suffix}"
        for family in families
        for suffix in suffixes.get(family.type, [""])
    }


def all_expressions() -> list[tuple[str, str]]:
    """Return name of the alert or panel, and expression."""
    return [(rule["alert"], rule["expr"]) for rule in rules()] + list(expressions())


def test_promtool_accepts_alerts() -> None:
    done = promtool("check", "rules", str(ALERTS))
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_fire_only_for_their_series() -> None:
    done = promtool("test", "rules", str(CASES))
    assert done.returncode == 0, done.stdout + done.stderr


def test_missing_alert_fails_the_cases(tmp_path: Any) -> None:
    text = CASES.read_text(encoding="utf-8").replace("../../docs/monitoring", str(MONITORING))
    spoilt = tmp_path / CASES.name
    spoilt.write_text(text.replace("values: 3x9 4x30", "values: 3x9 3x30"))
    done = promtool("test", "rules", str(spoilt))
    assert done.returncode != 0
    assert "RowqDeadMessages" in done.stdout + done.stderr


def test_each_alert_has_a_firing_and_a_silent_case() -> None:
    cases = [case for test in read(CASES)["tests"] for case in test["alert_rule_test"]]
    firing = {case["alertname"] for case in cases if case["exp_alerts"]}
    silent = {case["alertname"] for case in cases if not case["exp_alerts"]}
    names = {rule["alert"] for rule in rules()}
    assert firing == silent == names


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_alert_has_severity_and_annotations(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert rule["annotations"].keys() == {"summary", "description"}


@pytest.mark.parametrize(("name", "expression"), all_expressions())
def test_expression_uses_exported_series(name: str, expression: str) -> None:
    named = set(re.findall(r"\browq_\w+", expression))
    assert named, name
    assert named <= exported()


def test_label_values_of_expressions_are_exported() -> None:
    health = unit_text("postgres", "internal/health_queues")
    families = WorkerCollector("orders", IdleWorker()).collect()
    samples = [sample for family in families for sample in family.samples]
    values = {value for sample in samples for value in sample.labels.values()}
    values |= {"ready", "delayed", "leased", "dead", "blocked", "lease_seconds"}
    values |= set(re.findall(r"^ +'(\w+)', ", health, re.MULTILINE))
    for name, expression in all_expressions():
        wanted = set(re.findall(r'\b(?!queue)\w+!?="(\w+)"', expression))
        assert wanted <= values, name


def test_every_series_is_in_dashboard_or_alerts() -> None:
    """Two families are for manual queries only."""
    used = {
        word
        for _, expression in all_expressions()
        for word in re.findall(r"\browq_\w+", expression)
    }
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in exported() - used}
    left = families - {re.sub(r"_(bucket|count|sum)$", "", name) for name in used}
    assert left == {"rowq_messages_capped", "rowq_worker_last_poll_timestamp_seconds"}


def test_panels_have_unique_ids_and_do_not_overlap() -> None:
    assert max(Counter(panel["id"] for panel in PANELS).values()) == 1
    for one, other in combinations((panel["gridPos"] for panel in PANELS), 2):
        is_beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        is_above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert is_beside or is_above
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in PANELS)


OPTIONS = {
    "timeseries": {"legend", "tooltip"},
    "stat": {
        *("colorMode", "graphMode", "justifyMode", "orientation", "textMode", "reduceOptions"),
    },
    "table": {"showHeader", "sortBy"},
}
"""By type of panel, the options that Grafana has for it, as far as they are used."""


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_panel_has_fields_of_its_type(panel: dict[str, Any]) -> None:
    assert panel.keys() - {"description", "transformations"} == {
        *("id", "type", "title", "datasource", "gridPos", "fieldConfig", "options", "targets"),
    }
    assert panel["options"].keys() == OPTIONS[panel["type"]]
    assert panel["fieldConfig"]["defaults"]["unit"] in {"s", "ops", "short", "none"}
    refs = [target["refId"] for target in panel["targets"]]
    assert len(set(refs)) == len(refs)
    for target in panel["targets"]:
        assert target["datasource"] == panel["datasource"] == {
            "type": "prometheus", "uid": "${datasource}",
        }  # fmt: skip


def test_dashboard_variables_are_used() -> None:
    variables = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    text = (MONITORING / "grafana.json").read_text(encoding="utf-8")
    used = set(re.findall(r"\$\{?([a-z]\w+)", text))
    assert variables == used == {"datasource", "queue"}
