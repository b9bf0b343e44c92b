"""OpenTelemetry traces, off until `instrument` is called; traces.py describes the spans.

This module does not import OpenTelemetry.
"""

import logging
from typing import Any

from rowq import tracing
from rowq.errors import PackageMissing

_log = logging.getLogger("rowq")


def instrument(*, parent: bool = False, tracer_provider: Any = None) -> None:
    """Trace all handlers, and all calls that send or dequeue messages, in this process.

    Args:
        parent: make the handler's span a child of the span that sent the message. Otherwise the
            handler starts its own trace, with a link to it.
        tracer_provider: OpenTelemetry's; None: the application's.

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
    """Stop tracing; running calls and handlers are traced to their end."""
    tracing.active = None


def follow_environment(switch: str) -> None:
    """Start tracing because the variable `switch` is set; only log a missing package."""
    try:
        instrument()
    except PackageMissing as error:
        _log.warning("%s is set, but tracing is off: %s", switch, error)
