"""State shared by all requests: databases, samplers, templates and their filters."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rowq.messages import UnreadableHeaders
from rowq.tools.metrics import Collector
from rowq.tools.terminal import clock_of, local_text
from rowq.tools.throughput import is_live
from rowq.web.access import Settings, Signer
from rowq.web.databases import Database
from rowq.web.sampler import MAX_COUNT, Sampler
from rowq.worker.metrics import load_library

_HERE = Path(__file__).parent
# Forms read at a time; each may need memory for its maximum length.
_MOST_FORMS = 4


def count(number: int | None) -> str:
    """Return a number of messages, with a + if it reached the limit."""
    if number is None:
        return "-"
    return f"{number:,}+" if number >= MAX_COUNT else f"{number:,}"


def rate(a_second: float | None) -> str:
    """Return a number of messages per second."""
    return "-" if a_second is None else f"{a_second:,.1f}".removesuffix(".0")


def span(seconds: float | None) -> str:
    """Return a duration in the largest unit of which it has at least 2."""
    if seconds is None:
        return "-"
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if abs(seconds) >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def timestamp(time: datetime | None) -> str | Markup:
    """Return a time in UTC, which rowq.js converts to the browser's time zone."""
    if time is None:
        return "-"
    exact = time.astimezone(UTC)
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(
        exact.isoformat(), exact.strftime("%Y-%m-%d %H:%M:%S")
    )


def zoned(time: datetime | None, zone: str) -> str | Markup:
    """Return a time in a schedule's zone, which rowq.js does not convert."""
    if time is None:
        return "-"
    exact = time.astimezone(UTC).isoformat()
    return Markup('<time datetime="{0}" title="{0}" data-zone="{2}">{1}</time>').format(
        exact, local_text(time, clock_of(zone)), zone
    )


def words(name: str) -> str:
    """Return the name of a column or check as words."""
    return name.replace("_", " ")


def setting(value: Any) -> str:
    """Return the value of a setting."""
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)


def spark(counts: Sequence[int]) -> str:
    """Return the points of a polyline of counts, in a box of 100 by 20."""
    if len(counts) < 2:
        return ""
    greatest, step = max(*counts, 1), 100 / (len(counts) - 1)
    points = (f"{n * step:.1f},{19 - value * 18 / greatest:.1f}" for n, value in enumerate(counts))
    return " ".join(points)


def header_rows(headers: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return headers as texts, in order."""
    if isinstance(headers, UnreadableHeaders):
        return [("unreadable", headers.text)]
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in (headers or {}).items()
    ]


def json_text(value: Any) -> str:
    """Return a JSON value as lines of text."""
    return json.dumps(value, ensure_ascii=False, indent=2)


FILTERS = {
    "json_text": json_text,
    "count": count,
    "rate": rate,
    "span": span,
    "timestamp": timestamp,
    "zoned": zoned,
    "words": words,
    "setting": setting,
    "spark": spark,
    "header_rows": header_rows,
}


class Site:
    """State shared by all requests."""

    def __init__(self, urls: Mapping[str, str], settings: Settings) -> None:
        self.settings = settings
        self.databases = {name: Database(name, url) for name, url in urls.items()}
        self.samplers = {
            name: Sampler(database, settings.interval) for name, database in self.databases.items()
        }
        self.signer = Signer(settings.key)
        self.forms = anyio.CapacityLimiter(_MOST_FORMS)
        self.templates = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.filters.update(FILTERS)
        self.templates.tests["live"] = is_live
        self._registries: dict[str, Any] = {}

    def begin(self) -> None:
        """Allow streams, also after an earlier server of this page has ended them."""
        for sampler in self.samplers.values():
            sampler.begin()

    def end_streams(self) -> None:
        """End the streams, so that the server can shut down."""
        for sampler in self.samplers.values():
            sampler.end()

    def end(self) -> None:
        """End the streams, and close idle connections."""
        self.end_streams()
        for database in self.databases.values():
            database.close()

    def registry(self, database: Database) -> Any:
        """Return a registry of prometheus_client; raise PackageMissing without it."""
        if database.name not in self._registries:
            registry = load_library().CollectorRegistry()
            registry.register(Collector(database.url))
            self._registries[database.name] = registry
        return self._registries[database.name]
