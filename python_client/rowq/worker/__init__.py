"""A worker: takes messages, gives them to a handler, and sees to it that none is lost.

worker.py is the front door; team.py runs threads, pool.py processes; consumer.py is one thread's
loop over claims, and polling.py says which idle thread asks for more; plain.py and transactional.py
work on one claim; keeper.py is the heartbeat and housekeeper.py calls maintain.
"""

from rowq.worker.claim import HeldMessage
from rowq.worker.handlers import Fail, Retry
from rowq.worker.stats import WorkerStats
from rowq.worker.worker import Worker

__all__ = ["Fail", "HeldMessage", "Retry", "Worker", "WorkerStats"]
