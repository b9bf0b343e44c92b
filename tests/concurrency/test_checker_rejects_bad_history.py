"""Every rule of the checker rejects a bad history and accepts a good one."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.concurrency import checker
from tests.concurrency.checker import check, check_limits, check_order
from tests.concurrency.history import Event, Recorder, Results, read, write
from tests.concurrency.record import Record

GOOD = [
    Event(0, 1, "p", "enqueue", None, ((1, 5), (2, 5), (3, 5), (4, 5), (5, 5))),
    Event(2, 3, "a", "dequeue", 10, ((1, 1), (2, 1)), lease_seconds=30),
    Event(3, 4, "b", "dequeue", 11, ((3, 1), (4, 1)), lease_seconds=30),
    Event(5, 6, "a", "complete", 10, ((1, "completed"),)),
    Event(6, 7, "a", "release", 10, ((2, "released"),)),
    Event(7, 8, "b", "expire", 11),
    Event(9, 10, "a", "dequeue", 12, ((2, 1), (3, 2), (4, 2)), lease_seconds=30),
    Event(11, 12, "b", "complete", 11, ((3, "stale"), (4, "stale"))),
    Event(13, 14, "a", "complete", 12, ((2, "completed"), (3, "completed"))),
    Event(14, 15, "a", "retry_later", 12, ((4, "retrying"),)),
    Event(16, 17, "p", "cancel", None, ((5, "cancelled"),)),
    Event(18, 19, "judge", "census", None, ((4, "delayed"),)),
]
EMPTY = ((4, "delayed"),)


def test_good_history_passes() -> None:
    assert check(GOOD) == []


def test_cancelled_message_may_end_unrecorded() -> None:
    asked = Event(13.5, 13.6, "p", "cancel", None, ((4, "requested"),))
    given_up = Event(14, 15, "a", "retry_later", 12, ((4, "cancelled"),))
    nothing = Event(18, 19, "judge", "census", None, ())
    rest = [event for event in GOOD if event.end <= 14]
    cancelled = Event(16, 17, "p", "cancel", None, ((5, "cancelled"),))
    assert check([*rest, asked, given_up, cancelled, nothing]) == []
    assert check([*rest, asked, cancelled, nothing]) == []
    assert check([*rest, cancelled, nothing]) == ["message 4 is lost"]


def bad(*more: Event, without: Callable[[Event], bool] = lambda _: False) -> list[Event]:
    """Return the good history with other events added and some removed."""
    return [*(event for event in GOOD if not without(event)), *more]


def is_census(event: Event) -> bool:
    return event.action == "census"


BROKEN_OFF = [
    Event(0, 1, "p", "enqueue", None, ((1, 5), (2, 5), (3, 5))),
    Event(2, 3, "a", "dequeue", 10, ((1, 1), (2, 1)), lease_seconds=30),
    Event(4, 5, "judge", "census", None, ((1, "leased"), (2, "leased"), (3, "ready"))),
    Event(6, 7, "a", "complete", 10, ((1, "completed"), (2, "completed")), known=False),
    Event(8, 9, "judge", "census", None, ((2, "leased"), (3, "ready"))),
]


def waiting(on_dead: str, *more: Event) -> list[Event]:
    """Return a history in which a message waits for a leased one."""
    return [
        Event(0, 1, "p", "enqueue", None, ((1, 5), (2, 5))),
        Event(0, 1, "p", "wait", None, ((2, f"{on_dead} 1"),)),
        Event(4, 5, "a", "dequeue", 10, ((1, 1),), lease_seconds=30),
        *more,
    ]


def test_good_history_of_blocked_messages_passes() -> None:
    dead = Event(6, 7, "a", "fail_now", 10, ((1, "dead"),))
    held = Event(8, 9, "judge", "census", None, ((1, "dead"), (2, "blocked")))
    assert check(waiting("hold", dead, held)) == []
    delivered = Event(8, 9, "b", "dequeue", 11, ((2, 1),), lease_seconds=30)
    left = Event(10, 11, "judge", "census", None, ((1, "dead"), (2, "leased")))
    assert check(waiting("continue", dead, delivered, left)) == []


def of_group(*more: Event) -> list[Event]:
    """Return a history of one group whose messages came one by one."""
    return [
        Event(0, 1, "p", "enqueue", None, ((1, 5),)),
        Event(0, 1, "p", "join", None, ((1, "g"),)),
        Event(2, 3, "p", "enqueue", None, ((2, 5), (3, 5))),
        Event(2, 3, "p", "join", None, ((2, "g"), (3, "g"))),
        Event(4, 5, "a", "dequeue", 10, ((1, 1),), lease_seconds=30),
        *more,
    ]


EXPIRED = [
    Event(0, 1, "p", "enqueue", None, ((1, 5), (2, 5))),
    Event(2, 3, "p", "expiring", None, ((1, "expiring"),)),
    Event(4, 5, "judge", "maintain"),
    Event(5, 6, "judge", "maintain"),
]


def test_expired_message_may_end_unrecorded() -> None:
    left = Event(6, 7, "judge", "census", None, ((2, "ready"),))
    assert check([*EXPIRED, left]) == []
    early = Event(1.2, 1.3, "judge", "census", None, ((2, "ready"),))
    assert check([*EXPIRED, early]) == ["message 1 is lost"]
    came_back = Event(4.5, 4.6, "judge", "census", None, ((1, "ready"), (2, "ready")))
    assert check([*EXPIRED, came_back, left]) == []


BAD = {
    "a message that was to expire": (
        checker.not_kept_after_expiry,
        [*EXPIRED, Event(6, 7, "judge", "census", None, ((1, "delayed"), (2, "ready")))],
        "message 1 should have expired",
    ),
    "a message of a group delivered too early": (
        checker.groups_in_order,
        of_group(
            Event(5, 6, "a", "retry_later", 10, ((1, "retrying"),)),
            Event(7, 8, "b", "dequeue", 11, ((2, 1),), lease_seconds=30),
            Event(9, 10, "b", "complete", 11, ((2, "completed"),)),
            Event(11, 12, "a", "dequeue", 12, ((1, 2),), lease_seconds=30),
            Event(13, 14, "a", "complete", 12, ((1, "completed"),)),
        ),
        "message 2 was delivered before 1 of its group had ended",
    ),
    "a message of a group that is never finished, and overtaken": (
        checker.groups_in_order,
        of_group(
            Event(5, 6, "a", "release", 10, ((1, "released"),)),
            Event(7, 8, "b", "dequeue", 11, ((3, 1),), lease_seconds=30),
        ),
        "message 3 was delivered before 1 of its group had ended",
    ),
    "two messages of a group in work": (
        checker.groups_keep_their_limit,
        of_group(
            Event(6, 7, "a", "complete", 10, ((1, "completed"),)),
            Event(8, 9, "b", "dequeue", 11, ((2, 1),), lease_seconds=30),
            Event(10, 11, "a", "dequeue", 12, ((3, 1),), lease_seconds=30),
        ),
        "messages [2, 3] of group g were in work at once",
    ),
    "two messages of a group ready": (
        checker.groups_keep_their_limit_in_a_census,
        of_group(
            Event(6, 7, "a", "complete", 10, ((1, "completed"),)),
            Event(8, 9, "judge", "census", None, ((2, "ready"), (3, "ready"))),
        ),
        "{'ready': 2} messages of group g were in work at once",
    ),
    "a message that came before its predecessor had ended": (
        checker.predecessors_end_first,
        waiting("hold", Event(6, 7, "b", "dequeue", 11, ((2, 1),), lease_seconds=30)),
        "message 2 was delivered before its predecessor 1 had ended",
    ),
    "a message that came although its predecessor is dead": (
        checker.predecessors_end_first,
        waiting(
            "hold",
            Event(6, 7, "a", "fail_now", 10, ((1, "dead"),)),
            Event(8, 9, "b", "dequeue", 11, ((2, 1),), lease_seconds=30),
        ),
        "message 2 was delivered before its predecessor 1 had ended",
    ),
    "a message that is never resumed": (
        checker.nothing_waits_for_nothing,
        waiting(
            "hold",
            Event(6, 7, "a", "complete", 10, ((1, "completed"),)),
            Event(8, 9, "judge", "census", None, ((2, "blocked"),)),
        ),
        "message 2 waits for nothing",
    ),
    "a message that waits for a dead one despite continue": (
        checker.nothing_waits_for_nothing,
        waiting(
            "continue",
            Event(6, 7, "a", "fail_now", 10, ((1, "dead"),)),
            Event(8, 9, "judge", "census", None, ((1, "dead"), (2, "blocked"))),
        ),
        "message 2 waits for nothing",
    ),
    "a group whose slot is never passed on": (
        checker.no_group_stranded,
        of_group(
            Event(6, 7, "a", "complete", 10, ((1, "completed"),)),
            Event(8, 9, "judge", "census", None, ((2, "blocked"), (3, "blocked"))),
        ),
        "2 messages of group g wait for nothing",
    ),
    "two live leases": (
        checker.no_double_lease,
        bad(Event(3, 4.5, "c", "dequeue", 13, ((1, 2),), lease_seconds=30)),
        "leased to claim 13 while claim 10 held it",
    ),
    "two live leases after a heartbeat": (
        checker.no_double_lease,
        [
            Event(0, 1, "p", "enqueue", None, ((1, 5),)),
            Event(2, 3, "a", "dequeue", 10, ((1, 1),), lease_seconds=5),
            Event(4, 4.5, "a", "extend_lease", 10, lease_seconds=30),
            Event(10, 11, "b", "dequeue", 11, ((1, 2),), lease_seconds=5),
        ],
        "leased to claim 11 while claim 10 held it",
    ),
    "completed twice": (
        checker.completed_once,
        bad(Event(15, 16, "b", "complete", 11, ((3, "completed"),))),
        "message 3 was finished 2 times",
    ),
    "completed and cancelled": (
        checker.completed_once,
        bad(Event(15, 16, "p", "cancel", None, ((1, "cancelled"),))),
        "message 1 was finished 2 times: completed, cancelled",
    ),
    "delivered after completion": (
        checker.not_delivered_after_completion,
        bad(Event(15, 16, "b", "dequeue", 13, ((1, 2),), lease_seconds=30)),
        "message 1 was delivered after it was finished",
    ),
    "delivered after cancellation": (
        checker.not_delivered_after_completion,
        bad(Event(17.5, 17.8, "b", "dequeue", 13, ((5, 1),), lease_seconds=30)),
        "message 5 was delivered after it was finished",
    ),
    "delivered after its worker was asked to stop": (
        checker.not_delivered_after_request,
        bad(
            Event(9.5, 9.6, "p", "cancel", None, ((4, "leased"),)),
            Event(13.5, 13.6, "p", "cancel", None, ((4, "requested"),)),
            Event(16, 17, "b", "dequeue", 13, ((4, 3),), lease_seconds=30),
        ),
        "message 4 was delivered after its worker was asked to stop",
    ),
    "completed and purged": (
        checker.completed_once,
        bad(Event(15, 16, "p", "purge_queue", None, ((1, "purged"),))),
        "message 1 was finished 2 times: completed, purged",
    ),
    "delivered after a purge": (
        checker.not_delivered_after_completion,
        bad(
            Event(15.5, 15.6, "p", "purge_queue", None, ((4, "purged"),)),
            Event(16, 17, "b", "dequeue", 13, ((4, 3),), lease_seconds=30),
        ),
        "message 4 was delivered after it was finished",
    ),
    "a purged message that is still there": (
        checker.nothing_lost,
        bad(Event(15.5, 15.6, "p", "purge_queue", None, ((4, "purged"),))),
        "message 4 is in ['delayed'] and was finished 1 times",
    ),
    "a call broken off halfway": (
        checker.whole_or_not_at_all,
        BROKEN_OFF,
        "complete was broken off halfway: it left [2] where they were",
    ),
    "a late finish accepted": (
        checker.late_finish_refused,
        bad(Event(11, 12, "b", "retry_later", 11, ((3, "retrying"),))),
        "claim 11 could retry_later message 3 after another claim had it",
    ),
    "a finish accepted twice": (
        checker.late_finish_refused,
        bad(Event(15, 16, "a", "retry_later", 12, ((4, "retrying"),))),
        "claim 12 finished message 4 2 times",
    ),
    "a finish by a strange claim": (
        checker.late_finish_refused,
        bad(Event(15, 16, "a", "retry_later", 99, ((4, "retrying"),))),
        "message 4 was finished by claim 99, not its own",
    ),
    "an attempt not counted": (
        checker.attempts_count_leases,
        [
            replace(event, results=((2, 1), (3, 1), (4, 2))) if event.claim_id == 12 else event
            for event in GOOD
        ],
        "message 3 came as attempt 1 in claim 12, not 2",
    ),
    "an attempt counted twice": (
        checker.attempts_count_leases,
        [
            replace(event, results=((2, 1), (3, 2), (4, 3)))
            if event.action == "dequeue" and event.claim_id == 12
            else event
            for event in GOOD
        ],
        "message 4 came as attempt 3 in claim 12, not 2",
    ),
    "a first attempt that is none": (
        checker.attempts_count_leases,
        bad(
            Event(0, 1, "p", "enqueue", None, ((6, 5),)),
            Event(17, 17.5, "a", "dequeue", 13, ((6, 0),), lease_seconds=30),
        ),
        "message 6 came as attempt 0 in claim 13, not 1",
    ),
    "a lost message": (
        checker.nothing_lost,
        bad(Event(18, 19, "judge", "census"), without=is_census),
        "message 4 is lost",
    ),
    "a message in two places": (
        checker.nothing_lost,
        bad(Event(18, 19, "judge", "census", None, (*EMPTY, (4, "ready"))), without=is_census),
        "message 4 is in ['delayed', 'ready'] and was finished 0 times",
    ),
    "a finished message that is still there": (
        checker.nothing_lost,
        bad(Event(18, 19, "judge", "census", None, (*EMPTY, (1, "ready"))), without=is_census),
        "message 1 is in ['ready'] and was finished 1 times",
    ),
    "a message out of nowhere in the census": (
        checker.nothing_lost,
        bad(Event(18, 19, "judge", "census", None, (*EMPTY, (77, "ready"))), without=is_census),
        "messages that were never enqueued: [77]",
    ),
    "a message out of nowhere in a claim": (
        checker.only_known_messages,
        bad(Event(15, 16, "a", "dequeue", 13, ((77, 1),), lease_seconds=30)),
        "message 77 was delivered and never enqueued",
    ),
    "a message delivered before it was enqueued": (
        checker.only_known_messages,
        bad(
            Event(20, 21, "p", "enqueue", None, ((6, 5),)),
            Event(15, 16, "a", "dequeue", 13, ((6, 1),), lease_seconds=30),
        ),
        "message 6 was delivered before it was enqueued",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_history_is_rejected(name: str) -> None:
    _, history, fault = BAD[name]
    assert any(fault in found for found in check(history)), check(history)


def test_every_rule_alone_rejects_some_bad_history() -> None:
    for rule, history, fault in BAD.values():
        assert any(fault in found for found in rule(Record(history)))
    assert {rule for rule, _, _ in BAD.values()} == set(checker.RULES)


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(
            Event(5, 5.5, "c", "dequeue", 13, ((1, 2),), lease_seconds=30),
            id="a lease taken while the complete of its holder was on its way",
        ),
        pytest.param(
            Event(40, 41, "c", "dequeue", 13, ((4, 3),), lease_seconds=30),
            id="a lease after the last one ran out",
        ),
    ],
)
def test_possibly_correct_lease_is_accepted(event: Event) -> None:
    assert list(checker.no_double_lease(Record(bad(event)))) == []


GROUP_IN_ORDER = of_group(
    Event(6, 7, "a", "complete", 10, ((1, "completed"),)),
    Event(6.5, 8, "b", "dequeue", 11, ((2, 1),), lease_seconds=30),
    Event(9, 10, "b", "fail_now", 11, ((2, "dead"),)),
    Event(11, 12, "b", "dequeue", 12, ((3, 1),), lease_seconds=30),
    Event(13, 14, "judge", "census", None, ((2, "dead"), (3, "leased"))),
)


@pytest.mark.promise("P21", "P22", "P24")
def test_group_in_order_passes() -> None:
    assert check(GROUP_IN_ORDER) == []


def test_group_with_limit_2_may_lease_two_messages() -> None:
    at_once = of_group(Event(5, 6, "b", "dequeue", 11, ((2, 1),), lease_seconds=30))
    assert check(at_once) != []
    assert check(at_once, group_limit=2) == []


def test_messages_enqueued_at_once_may_come_in_any_order() -> None:
    both = [
        Event(0, 2, "p", "enqueue", None, ((1, 5),)),
        Event(0, 2, "p", "join", None, ((1, "g"),)),
        Event(1, 3, "q", "enqueue", None, ((2, 5),)),
        Event(1, 3, "q", "join", None, ((2, "g"),)),
        Event(4, 5, "a", "dequeue", 10, ((2, 1),), lease_seconds=30),
        Event(6, 7, "a", "complete", 10, ((2, "completed"),)),
    ]
    assert check(both) == []


def test_lost_complete_may_have_ended_the_message() -> None:
    lost = Event(15, 16, "a", "complete", 12, ((4, "completed"),), known=False)
    gone = Event(18, 19, "judge", "census")
    assert check(bad(lost)) == []
    assert check(bad(lost, gone, without=is_census)) == []


@pytest.mark.parametrize("found", [((3, "ready"),), ((1, "leased"), (2, "leased"), (3, "ready"))])
def test_lost_call_may_have_done_everything_or_nothing(found: Results) -> None:
    *begun, census = BROKEN_OFF
    assert check([*begun, replace(census, results=found)]) == []


def test_lost_call_between_others_is_not_judged_as_a_whole() -> None:
    other = Event(6, 7, "b", "release", 10, ((2, "released"),))
    assert list(checker.whole_or_not_at_all(Record([*BROKEN_OFF, other]))) == []


def test_lost_dequeue_may_have_counted_an_attempt() -> None:
    lost = Event(8, 8.5, "c", "dequeue", known=False)
    counted = [
        replace(event, results=((2, 2), (3, 3), (4, 2)))
        if event.action == "dequeue" and event.claim_id == 12
        else event
        for event in GOOD
    ]
    assert check([*counted, lost]) == []


def test_order_is_judged_by_priority_then_arrival() -> None:
    sent = Event(0, 1, "p", "enqueue", None, ((1, 5), (2, 5), (3, 1)))

    def taken(*messages: int) -> Event:
        return Event(2, 3, "a", "dequeue", 10, tuple((message, 1) for message in messages))

    assert check_order([sent, taken(3, 1, 2)]) == []
    assert check_order([sent, taken(1, 3, 2)]) == ["message 1 came before message 3"]
    assert check_order([sent, taken(3, 2, 1)]) == ["message 2 came before message 1"]


LIMITED = [
    Event(0, 1, "p", "enqueue", None, tuple((message, 5) for message in range(1, 9))),
    Event(2, 3, "a", "dequeue", 10, ((1, 1), (2, 1)), lease_seconds=30),
    Event(3, 4, "b", "dequeue", 11, ((3, 1),), lease_seconds=4),
    Event(5, 6, "a", "complete", 10, ((1, "completed"),)),
    Event(5.5, 6.5, "b", "dequeue", 12, ((4, 1),), lease_seconds=30),
    Event(7.5, 8, "a", "dequeue", 13, ((5, 1),), lease_seconds=30),
    Event(8, 9, "a", "rollback", 13),
]


def leasing(start: float, message: int, lasts: float = 0.1) -> Event:
    return Event(
        start, start + lasts, "c", "dequeue", 20 + message, ((message, 1),), lease_seconds=30
    )


def test_kept_limits_are_accepted() -> None:
    assert check_limits(LIMITED, max_leased=3, rate_limit=4, rate_seconds=5) == []


@pytest.mark.parametrize(
    ("event", "fault"),
    [
        (leasing(4.2, 6), "4 messages were leased at 4.300000, and not 3"),
        (leasing(6.6, 6), "4 messages were leased at 6.700000, and not 3"),
    ],
)
@pytest.mark.promise("P28")
def test_one_lease_too_many_is_rejected(event: Event, fault: str) -> None:
    assert fault in check_limits([*LIMITED, event], max_leased=3)


@pytest.mark.promise("P28")
def test_lease_may_begin_when_another_may_have_ended() -> None:
    others = [event for event in LIMITED if event.claim_id != 12]
    assert check_limits([*others, leasing(5, 6)], max_leased=3) == []
    assert check_limits([*LIMITED, leasing(8.1, 6)], max_leased=3) == []


@pytest.mark.promise("P29")
def test_one_delivery_too_many_in_a_window_is_rejected() -> None:
    assert check_limits([*LIMITED, leasing(6.6, 6)], rate_limit=4, rate_seconds=5) == [
        "5 deliveries began in 5 s from 2.000000, and not 4"
    ]
    whole = [*LIMITED, leasing(6.6, 6, lasts=1)]
    assert check_limits(whole, rate_limit=4, rate_seconds=5) == [], (
        "a dequeue that may have begun later"
    )


def test_history_survives_writing_and_reading(tmp_path: Path) -> None:
    recorder = Recorder(clock=iter(range(10)).__next__)
    recorder.record(0, "a", "dequeue", 1, [(5, 1)], lease_seconds=3)
    recorder.record(1, "a", "complete", 1, [(5, "completed")], known=False)
    write(recorder.history(), tmp_path / "history.jsonl")
    assert read(tmp_path / "history.jsonl") == recorder.history()
