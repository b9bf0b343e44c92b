"""A worker: leases messages, gives them to a handler, and hands in what becomes of them.

worker.py is the public class. processes.py runs it in several processes, threads.py in the threads
of one; context.py is what these threads share. consumer.py is the loop of one thread over claims,
and polling.py says which idle thread asks for more; claim.py is one claim. handling.py gives its
messages to the handler, transactional.py does so in a transaction, and handlers.py says what a
handler is and may decide. heartbeat.py extends leases, listener.py is told of new messages, and
meter.py counts, and measures for metrics.
"""

from rowq.worker.claim import HeldMessage
from rowq.worker.handlers import Fail, Retry
from rowq.worker.meter import WorkerStats
from rowq.worker.worker import Worker

__all__ = ["Fail", "HeldMessage", "Retry", "Worker", "WorkerStats"]
