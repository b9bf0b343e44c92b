"""A worker: python -m tests.client.worker_program URL QUEUE HANDLER OPTIONS, which is JSON.

Prints its stats as JSON when it ends by itself or by the first signal.
"""

import dataclasses
import json
import logging
import sys

import rowq


def main() -> None:
    """Run the worker."""
    logging.basicConfig(format="%(process)d %(name)s %(message)s")
    url, queue_name, handler, options = sys.argv[1:]
    given = {"batch_size": 10, **json.loads(options)}
    try:
        stats = rowq.Worker(url, queue_name, handler, **given).run()
    except rowq.WorkerFailed as error:
        sys.exit(f"failed: {error}")
    print(json.dumps(dataclasses.asdict(stats), default=str))


if __name__ == "__main__":
    main()
