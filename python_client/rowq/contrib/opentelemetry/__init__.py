"""Traces by OpenTelemetry, off until `instrument` is called.

This module imports nothing of OpenTelemetry. traces.py says what is traced, and how that is called.
"""

import logging
from typing import Any

from rowq import tracing
from rowq.errors import PackageMissing

_log = logging.getLogger("rowq")


def instrument(*, parent: bool = False, tracer_provider: Any = None) -> None:
    """Trace the calls of all queue objects of this process that send or take, and all handlers.

    Args:
        parent: whether the span of a message's handler is a child of the span that has sent the
            message, and so in its trace; else it begins a trace of its own and is linked to it.
        tracer_provider: OpenTelemetry's; None: the one that the application has set.

    Raises:
        PackageMissing: opentelemetry-api is not installed.
    """
    try:
        from rowq.contrib.opentelemetry.traces import Traces
    except ImportError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        hint = "traces need opentelemetry-api: pip install 'rowq[otel]'"
        raise PackageMissing(hint) from error
    tracing.active = Traces(tracer_provider, parent=parent)


def uninstrument() -> None:
    """Trace nothing any more; what is under way is traced to its end."""
    tracing.active = None


def follow_environment(switch: str) -> None:
    """Trace, as the variable `switch` says; a missing package is a warning in the log."""
    try:
        instrument()
    except PackageMissing as error:
        _log.warning("%s is set, and nothing is traced: %s", switch, error)
