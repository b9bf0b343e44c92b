"""Use of a queue in parent and child after a fork: python -m tests.client.fork_program URL QUEUE.

Each prints as JSON how often it has connected since the beginning. The child ends as programs
do, so that everything it has is finalized.
"""

import gc
import json
import os
import sys
import warnings

import rowq
from rowq.session import OwnedSession

CALLS = 20


def main() -> None:
    """Fork; use the queue in the child, then in the parent."""
    warnings.simplefilter("error")
    url, queue_name = sys.argv[1:]
    session, unused = OwnedSession(url), OwnedSession(url)
    connections = _counted(session)
    session.open()
    unused.open()
    queue = rowq.Queue(session)
    queue.version()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        unused.close()
    del unused
    gc.collect()
    for number in range(CALLS):
        queue.enqueue(queue_name, number)
    print(json.dumps({"connections": len(connections)}), flush=True)
    queue.close()


def _counted(session: OwnedSession) -> list[object]:
    """Return a list with one entry per connection of the engine."""
    made: list[object] = []
    connect = session.engine.connect

    def counting(url: str) -> object:
        made.append(url)
        return connect(url)

    session.engine.connect = counting  # type: ignore[method-assign]
    return made


if __name__ == "__main__":
    main()
