"""opentelemetry-api, imported when it is first needed."""

from types import ModuleType

from rowq.errors import PackageMissing


def load_library() -> ModuleType:
    """Return opentelemetry.trace; raises PackageMissing with what to install."""
    try:
        from opentelemetry import trace
    except ImportError as error:
        hint = "traces need opentelemetry-api: pip install 'rowq[otel]'"
        raise PackageMissing(hint) from error
    return trace
