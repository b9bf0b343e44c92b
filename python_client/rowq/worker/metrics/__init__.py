"""Metrics of a worker for Prometheus."""

from types import ModuleType

from rowq.errors import PackageMissing


def load_library() -> ModuleType:
    """Return prometheus_client; raises PackageMissing with the install command."""
    try:
        import prometheus_client
    except ImportError as error:
        hint = "metrics need prometheus-client: pip install 'rowq[metrics]'"
        raise PackageMissing(hint) from error
    return prometheus_client
