"""Handlers for the workers of the tests."""

import time

import rowq


def unreliable(message: rowq.Message) -> None:
    """Complete, fail permanently, raise or retry, depending on the message's number."""
    time.sleep(0.01)
    match message.data % 20:
        case 1:
            raise rowq.Fail("never")
        case 2:
            raise RuntimeError("broken")
        case 3:
            raise rowq.Retry(1.0)
        case 4:
            time.sleep(1.5)
