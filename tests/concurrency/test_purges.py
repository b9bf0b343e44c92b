"""The purge of a run is reconstructed from the messages that are missing."""

import pytest

from tests.concurrency.checker import check
from tests.concurrency.history import Event
from tests.concurrency.purges import Purge, with_purge

HISTORY = [
    Event(0, 1, "p", "enqueue", None, ((1, 5), (2, 5), (3, 5), (4, 5))),
    Event(2, 3, "a", "dequeue", 10, ((1, 1),), lease_seconds=30),
    Event(4, 5, "a", "complete", 10, ((1, "completed"),)),
    Event(8, 9, "judge", "census", None, ((4, "ready"),)),
]
LOST = Event(4.5, 5, "b", "cancel", None, ((3, "cancelled"),), known=False)


def test_missing_messages_without_another_end_were_purged() -> None:
    history = with_purge(HISTORY, Purge(6, 7, 2), 5)
    assert history[3] == Event(
        6, 7, "maintainer", "purge_queue", None, ((2, "purged"), (3, "purged"))
    )
    assert check(history) == []
    assert with_purge(HISTORY, Purge(6, 7, None), 2) == history, "no answer came"


def test_messages_of_a_lost_call_may_have_been_purged() -> None:
    for removed in (1, 2):
        with_purge([*HISTORY, LOST], Purge(6, 7, removed), 5)


@pytest.mark.parametrize(
    ("removed", "most", "fault"),
    [
        (1, 5, "1 were purged, 2 are missing"),
        (3, 5, "only 2 are missing"),
        (None, 1, "2 were purged, and no more than 1 may be"),
    ],
)
def test_purge_whose_number_does_not_match_is_rejected(
    removed: int | None, most: int, fault: str
) -> None:
    with pytest.raises(AssertionError, match=fault):
        with_purge(HISTORY, Purge(6, 7, removed), most)
