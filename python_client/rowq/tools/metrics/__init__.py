"""Prometheus metrics of the queues of a database; needs prometheus-client, the extra `metrics`.

rowq.worker.metrics has the metrics of a worker, and the HTTP server for both.
"""

from rowq.tools.metrics.queues import Collector

__all__ = ["Collector"]
