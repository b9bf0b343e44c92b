"""What Prometheus is told: the queues of a database, and what a worker does.

queues.py has the public class, for an application's own registry, and makes metrics of what
sampling.py asks the database. rowq.worker.metrics has the worker's, and the server that hands both
out by HTTP; it imports prometheus-client, the extra `metrics`.
`import rowq` imports none of this.
"""

from rowq.tools.metrics.queues import Collector

__all__ = ["Collector"]
