"""API and worker in one process: uvicorn shop.server:app."""

import os

from rowq import Worker
from shop.app import create_app
from shop.tasks import notify

app = create_app(Worker(os.environ["ROWQ_URL"], "notifications", notify, transactional=True))
