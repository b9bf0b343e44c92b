"""The worker's logger: rowq.worker."""

import logging

log = logging.getLogger("rowq.worker")
