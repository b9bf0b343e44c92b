"""The worker: it leases messages, calls a handler for them, and reports their outcomes.

worker.py has the public class. processes.py runs it in child processes, threads.py in the threads
of one process; context.py is their shared state. consumer.py is the loop of one thread over claims,
claim.py one claim, polling.py the turns of idle threads. handling.py calls the handler,
transactional.py in a transaction; handlers.py defines handlers and their decisions. heartbeat.py
extends leases, listener.py receives notifications, meter.py counts and measures.
"""

from rowq.worker.claim import HeldMessage
from rowq.worker.handlers import Fail, Retry, Snooze
from rowq.worker.meter import WorkerStats
from rowq.worker.worker import Worker

__all__ = ["Fail", "HeldMessage", "Retry", "Snooze", "Worker", "WorkerStats"]
