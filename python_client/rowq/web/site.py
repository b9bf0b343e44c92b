"""What all requests share: the databases, what was seen in them last, the templates."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rowq.tools.metrics import Collector
from rowq.tools.throughput import is_live
from rowq.web.access import Signer
from rowq.web.databases import Database
from rowq.web.formats import FILTERS
from rowq.web.sampler import Sampler
from rowq.web.settings import Settings
from rowq.worker.metrics.library import load_library

_HERE = Path(__file__).parent
# Forms that are read at a time: each may take its whole length of memory.
_MOST_FORMS = 4


class Site:
    """What all requests share."""

    def __init__(self, urls: Mapping[str, str], settings: Settings) -> None:
        """Prepare, and connect to nothing; raises EngineUnknown."""
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
        """Let streams begin, also where an earlier server of this page has ended them."""
        for sampler in self.samplers.values():
            sampler.begin()

    def end_streams(self) -> None:
        """End the streams, so that the server that serves them can end."""
        for sampler in self.samplers.values():
            sampler.end()

    def end(self) -> None:
        """End the streams, and close the connections that nobody uses."""
        self.end_streams()
        for database in self.databases.values():
            database.close()

    def registry(self, database: Database) -> Any:
        """Return a registry of prometheus_client; raises PackageMissing without that."""
        if database.name not in self._registries:
            registry = load_library().CollectorRegistry()
            registry.register(Collector(database.url))
            self._registries[database.name] = registry
        return self._registries[database.name]
