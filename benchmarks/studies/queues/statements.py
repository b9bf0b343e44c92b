"""The statements of a system's client, in a module that every session's process can import fast.

Parameters:
    create      $1 queue
    enqueue     $1 queue, $2 body
    enqueue_batch   $1 queue, $2 bodies, as `bodies` writes them
    fill        $1 queue, $2 first number, $3 number of messages, $4 seconds of delay
    dequeue     $1 queue, $2 batch size; columns: message id, body, claim
    complete    $1 queue, $2 the claim, or the message's id, or for `complete_many` an array of ids
    complete_and_dequeue    $1 queue, $2 the claim, $3 batch size; columns as dequeue, and outcome
    waiting     $1 queue; the number of messages that a dequeue could return
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from benchmarks.harness.load import body

LEASE_SECONDS = 600

NUMBERS_SQL = "generate_series($2::bigint, $2::bigint + $3::bigint - 1) g"


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements, with the parameters of this module's docstring.

    bodies: returns the numbered bodies of a batch as a text of one parameter.
    complete: None if dequeue deletes. by_claim: whether complete takes the claim, not ids.
    complete_and_dequeue: None, or not installed by an older commit: two calls.
    """

    create: str
    enqueue: str
    enqueue_batch: str
    bodies: Callable[[int], bytes]
    fill: str
    dequeue: str
    complete: str | None
    complete_many: str | None
    by_claim: bool
    waiting: str
    complete_and_dequeue: str | None = None
    maintain: str | None = None


@cache
def json_objects(count: int) -> bytes:
    """Return numbered bodies as a JSON array of objects."""
    return json.dumps([{"body": body(number).decode()} for number in range(count)]).encode()


@cache
def text_array(count: int) -> bytes:
    """Return numbered bodies as the text of an array."""
    quoted = (body(number).replace(b'"', rb"\"") for number in range(count))
    return b'{"' + b'","'.join(quoted) + b'"}'
