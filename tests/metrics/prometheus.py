"""A private Prometheus for tests."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode

from tests.engines.base import wait_until
from tests.metrics.promtool import program
from tests.metrics.reading import free_port, get

CONFIGURATION = """\
global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files:
  - {rules}
scrape_configs:
"""
JOB = """\
  - job_name: {name}
    static_configs:
      - targets: ["{target}"]
"""


class Prometheus:
    """HTTP client of a Prometheus."""

    def __init__(self, address: str) -> None:
        self._address = address

    def is_up(self) -> bool:
        """Return whether the server answers."""
        try:
            return get(f"{self._address}/-/ready")[0] == 200
        except (URLError, OSError):
            return False

    def query(self, expression: str) -> Sequence[Mapping[str, Any]]:
        """Return the current series of an expression."""
        found: Sequence[Mapping[str, Any]] = self._data("query", query=expression)["result"]
        return found

    def rules(self) -> list[Mapping[str, Any]]:
        """Return all rules with their health."""
        return [rule for group in self._data("rules")["groups"] for rule in group["rules"]]

    def targets(self) -> Sequence[Mapping[str, Any]]:
        """Return the scraped targets with their health."""
        targets: Sequence[Mapping[str, Any]] = self._data("targets")["activeTargets"]
        return targets

    def _data(self, page: str, **parameters: str) -> Any:
        status, text = get(f"{self._address}/api/v1/{page}?{urlencode(parameters)}")
        answer = json.loads(text)
        assert status == 200, answer
        return answer["data"]


@contextmanager
def scraping(targets: Mapping[str, str], rules: Path, directory: Path) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes `targets` (by job name) during a block."""
    jobs = "".join(JOB.format(name=name, target=target) for name, target in targets.items())
    file = directory / "prometheus.yml"
    file.write_text(CONFIGURATION.format(rules=rules) + jobs, encoding="utf-8")
    place = f"127.0.0.1:{free_port()}"
    command = [
        program("prometheus"),
        f"--config.file={file}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={place}",
        "--log.level=warn",
    ]
    with (
        (directory / "log").open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as process,
    ):
        try:
            found = Prometheus(f"http://{place}")
            wait_until(found.is_up, "Prometheus is up", seconds=60)
            yield found
        finally:
            process.terminate()
            process.wait(30)
