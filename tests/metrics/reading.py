"""Parses metrics and reads them over HTTP."""

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

Sample = tuple[str, dict[str, str]]


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return the value of each series by name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


class Metrics:
    """Parsed metrics, read by name and labels."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._samples = samples(text)

    def value(self, name: str, /, **labels: str) -> float | None:
        """Return the value of a series, or None."""
        return self._samples.get((name, frozenset(labels.items())))

    def named(self, name: str, /) -> Iterator[dict[str, str]]:
        """Yield the labels of all series of a name."""
        yield from (dict(labels) for found, labels in self._samples if found == name)


def free_port() -> int:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def scraped(collector: Any) -> Metrics:
    """Return the metrics of one collector."""
    registry = CollectorRegistry()
    registry.register(collector)
    return Metrics(generate_latest(registry).decode())


def get(url: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    """Return status and text of a page."""
    request = urllib.request.Request(url, method=method, headers=headers)  # noqa: S310 - http
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def fetched(address: str) -> Metrics:
    """Return the metrics served at /metrics."""
    status, text = get(f"{address}/metrics")
    assert status == 200, text
    return Metrics(text)
