"""Tests that fail on Babelfish, with the reason.

They run and are reported as "xfailed". A pass is a failure, so that no entry is outdated.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A difference of Babelfish, and the tests that fail because of it.

    tests: file below tests/, name, and in brackets a part of the parameters' id if not all cases
    fail. always: whether they fail with any driver on any machine, so that a pass is an error.
    """

    what: str
    tests: tuple[str, ...]
    always: bool = True


FAULTS = (
    Fault(
        "OPENJSON does not decode escapes in the short texts of a message",
        ("contract/test_enqueue_batch.py::test_batch_returns_texts_unchanged",),
    ),
    Fault(
        "JSON_QUERY inside FOR JSON comes out as a text",
        (
            "contract/test_dequeue_wait.py::test_messages_have_the_columns_of_dequeue_fast",
            "client/test_queue.py::test_dequeue_wait_returns_messages_as_dequeue_fast",
            "contract/test_headers.py::test_headers_at_the_limits_are_returned_by_every_routine",
            "contract/test_headers.py::"
            "test_numbers_at_the_limits_are_returned_by_every_routine[9999]",
        ),
    ),
    Fault(
        "LEFT counts a surrogate pair once, but the length of a column counts it twice",
        (
            "contract/test_enqueue_batch.py::"
            "test_enqueue_batch_refuses_an_invalid_message_by_position[f418]",
        ),
    ),
    Fault(
        "OPENJSON expands a number with an exponent",
        (
            "contract/test_headers.py::"
            "test_numbers_at_the_limits_are_returned_by_every_routine[e200]",
            "contract/test_headers.py::"
            "test_numbers_at_the_limits_are_returned_by_every_routine[E+0200]",
            "contract/test_headers.py::"
            "test_numbers_at_the_limits_are_returned_by_every_routine[e-200]",
        ),
    ),
    Fault(
        "archive partitions are neither split nor truncated",
        (
            "contract/test_purge_archive.py::test_partition_is_dropped_when_no_queue_needs_it",
            "contract/test_purge_archive.py::test_maintain_archives_and_drops_partitions",
            "contract/test_purge_archive.py::test_dropped_day_can_be_archived_again",
        ),
    ),
    Fault(
        "a second call of a procedure with a table-valued argument sees the first argument",
        (
            "contract/test_reap.py::test_reap_makes_messages_dead_after_the_last_attempt",
            "contract/test_expiry.py::test_returned_message_expires[retry_now",
            "concurrency/test_against_reference.py::"
            "test_random_calls_return_what_the_model_returns",
        ),
    ),
    Fault(
        "no session recovery, which Microsoft's driver needs to reconnect",
        (
            "client/test_connection_loss.py::test_dead_idle_connection_is_replaced_before_a_call",
            "client/test_connection_loss.py::test_reconnect_ends_after_reconnect_seconds",
        ),
        always=False,
    ),
    Fault(
        "procedure names are in lower case, so all of them seem unknown",
        ("cli/test_migrate.py::test_migrate_status_and_rollback_work",),
    ),
    Fault(
        "a delete joined with a table variable scans the other table for each row: 20,000 messages"
        " take longer than the test's timeout",
        ("contract/test_purge_queue.py::test_purge_queue_removes_more_than_one_step",),
        always=False,
    ),
    Fault(
        "a session needs seconds to compile its first call, which breaks tests with many new"
        " sessions or a lease or delay of 1 second",
        (
            "contract/test_limits.py::test_rate_limit_limits_deliveries_per_rate_seconds",
            "contract/test_enqueue.py::test_delayed_message_is_ready_after_its_delay",
            "client/test_wrong_clock.py::test_worker_keeps_its_lease_with_a_wrong_clock",
            "client/test_worker_polling.py::test_twenty_idle_threads_poll_as_rarely_as_one",
            "client/test_worker_processes.py::test_parent_fails_if_children_keep_dying",
        ),
        always=False,
    ),
    Fault(
        "it reports SQL Server 2014, so the doctor stops before the rights",
        (
            "cli/test_doctor.py::test_doctor_passes_correct_installation",
            "cli/test_doctor.py::test_doctor_reports_rights_by_role",
            "cli/test_doctor.py::test_check_of_rights_changes_nothing",
        ),
    ),
    Fault(
        "lock hints are ignored, so sessions wait differently",
        ("cli/test_load_interrupted.py::test_load_reports_connection_lost_during_batch",),
    ),
    Fault(
        "DATALENGTH of a value from OPENJSON counts UTF-8 bytes",
        (
            "contract/test_body_length.py::"
            "test_enqueue_batch_refuses_a_too_long_body_by_position[binary]",
            "contract/test_body_length.py::"
            "test_enqueue_batch_refuses_a_too_long_body_by_position[json]",
            "contract/test_body_length.py::test_enqueue_refuses_too_long_headers[xe9]",
        ),
    ),
    Fault(
        "no REPEATABLE READ or SERIALIZABLE by default",
        (
            "contract/test_limits.py::test_limited_dequeue_with_an_old_snapshot[repeatable",
            "contract/test_limits.py::test_limited_dequeue_with_an_old_snapshot[serializable",
        ),
    ),
    Fault(
        "a text cannot contain NUL",
        ("contract/test_round_trip.py::test_nul_in_a_text_is_refused_or_stored",),
    ),
)

_TEST = re.compile(r"(?P<test>[^\[]+)(?:\[(?P<case>.*)\])?$", re.DOTALL)


def fault_of(node: str) -> Fault | None:
    """Return the known reason why a test fails on Babelfish, by its node id, or None."""
    found = _TEST.match(node.removeprefix("tests/"))
    if found is None:
        return None
    for fault in FAULTS:
        for known in fault.tests:
            name, _, case = known.removesuffix("]").partition("[")
            if name == found["test"] and case in (found["case"] or ""):
                return fault
    return None
