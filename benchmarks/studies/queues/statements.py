"""The statements of a system's client, in a module that every session's process can import fast.

Parameters:
    create      $1 queue
    enqueue     $1 queue, $2 body
    fill        $1 queue, $2 first number, $3 number of messages, $4 seconds of delay
    dequeue     $1 queue, $2 batch size; columns: message id, body, claim
    complete    $1 queue, $2 the claim, or the message's id, or for `complete_many` an array of ids
"""

from dataclasses import dataclass

LEASE_SECONDS = 600

NUMBERS_SQL = "generate_series($2::bigint, $2::bigint + $3::bigint - 1) g"


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements, with the parameters of this module's docstring.

    complete: None if dequeue deletes. by_claim: whether complete takes the claim, not ids.
    """

    create: str
    enqueue: str
    fill: str
    dequeue: str
    complete: str | None
    complete_many: str | None
    by_claim: bool
    maintain: str | None = None
