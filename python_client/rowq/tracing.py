"""Traces by OpenTelemetry, off until somebody asks for them.

This module imports nothing of OpenTelemetry. The queue objects and workers look whether `active` is
there; traces.py, which is what it then is, says what is traced, and names.py how that is called.
"""

import logging
import os
from typing import TYPE_CHECKING, Any

from rowq.errors import PackageMissing

if TYPE_CHECKING:
    from rowq.contrib.opentelemetry.traces import Traces

_log = logging.getLogger("rowq")

_SWITCH = "OTEL_INSTRUMENTATION_ROWQ"

active: "Traces | None" = None
"""What traces calls and handlers; None while nothing is traced."""


def instrument(*, parent: bool = False, tracer_provider: Any = None) -> None:
    """Trace the calls of all queue objects of this process that send or take, and all handlers.

    Args:
        parent: whether the span of a message's handler is a child of the span that has sent the
            message, and so in its trace; else it begins a trace of its own and is linked to it.
        tracer_provider: OpenTelemetry's; None: the one that the application has set.

    Raises:
        PackageMissing: opentelemetry-api is not installed.
    """
    global active
    from rowq.contrib.opentelemetry.library import load_library

    load_library()
    from rowq.contrib.opentelemetry.traces import Traces

    active = Traces(tracer_provider, parent=parent)


def uninstrument() -> None:
    """Trace nothing any more; what is under way is traced to its end."""
    global active
    active = None


def follow_environment() -> None:
    """Trace if OTEL_INSTRUMENTATION_ROWQ says so; a missing package is a warning in the log."""
    if os.environ.get(_SWITCH, "").lower() in {"1", "true"}:
        try:
            instrument()
        except PackageMissing as error:
            _log.warning("%s is set, and nothing is traced: %s", _SWITCH, error)
