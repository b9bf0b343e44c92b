"""The Celery application of the tests: celery -A tests.celery.shop.

A task that waits does so for a file in ROWQ_TEST_DIRECTORY, and each leaves a line in `done`.
"""

import os
import time
from pathlib import Path
from typing import Any

from celery import Celery
from celery.exceptions import Reject

import rowq.contrib.celery  # noqa: F401 - makes the scheme known

DIRECTORY = Path(os.environ["ROWQ_TEST_DIRECTORY"])
PATIENCE_SECONDS = 100

app = Celery(
    "shop",
    broker=f"rowq+{os.environ['ROWQ_TEST_URL']}",
    backend=f"file://{DIRECTORY / 'results'}",
)
app.conf.update(
    task_default_queue=os.environ["ROWQ_TEST_QUEUE"],
    broker_connection_retry_on_startup=True,
    broker_transport_options={"polling_interval": 0.02, "reconnect_seconds": 0.5},
    worker_cancel_long_running_tasks_on_connection_loss=False,
)


def note(word: str) -> None:
    """Append a line; short lines are written atomically."""
    with (DIRECTORY / "done").open("a", encoding="utf-8") as file:
        file.write(f"{word}\n")


@app.task
def add(first: int, second: int) -> int:
    return first + second


@app.task
def say(word: str) -> None:
    note(word)


@app.task(rate_limit="1/h")
def say_seldom(word: str) -> None:
    note(word)


@app.task(acks_late=True)
def hold_late(word: str) -> None:
    hold(word)


@app.task
def hold_early(word: str) -> None:
    hold(word)


def hold(word: str) -> None:
    """Record the start of the task, and wait for the file that ends it."""
    note(f"{word} began")
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not (DIRECTORY / f"end {word}").exists():
        if time.monotonic() > give_up_at:
            raise TimeoutError(word)
        time.sleep(0.02)
    note(f"{word} ended")


@app.task(bind=True, max_retries=2)
def fail_twice(task: Any) -> int:
    if task.request.retries < 2:
        raise task.retry(countdown=0.1)
    retries: int = task.request.retries
    return retries


@app.task(bind=True, acks_late=True)
def requeue_once(task: Any) -> str:
    if not task.request.delivery_info["redelivered"]:
        raise Reject("once more", requeue=True)
    return "redelivered"


@app.task(acks_late=True)
def refuse() -> None:
    raise Reject("never", requeue=False)
