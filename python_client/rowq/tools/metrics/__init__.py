"""What Prometheus is told: the queues of a database, and what a worker does.

collector.py is the public class, for an application's own registry; sampling.py asks the database,
and queues.py makes metrics of the answer. rowq.worker.metrics has the worker's, and the server that
hands both out by HTTP; its library.py imports prometheus-client, the extra `metrics`.
`import rowq` imports none of this.
"""

from rowq.tools.metrics.collector import Collector

__all__ = ["Collector"]
