"""A worker's complete_and_dequeue fails at its commit, in a deferred trigger."""

import pytest

import rowq
from tests.engines.base import Connection
from tests.helpers.queues import CheckedQueue
from tests.helpers.worker_queue import WorkerQueue

FAILS_ONCE_AT_COMMIT = """
    create sequence public.tried;
    grant usage on sequence public.tried to public;
    create function public.fails_once() returns trigger language plpgsql as $$
    begin
        if nextval('public.tried') = 3 then
            raise exception 'at the commit' using errcode = '40001';
        end if;
        return null;
    end $$;
    create constraint trigger fails_once after delete on rowq.claim
    deferrable initially deferred for each row execute function public.fails_once();
    """


@pytest.mark.promise("P02", "P04")
def test_commit_error_costs_only_a_connection(
    empty_database: str, owner: Connection, own_queue: CheckedQueue
) -> None:
    owner.execute(FAILS_ONCE_AT_COMMIT)
    queue = WorkerQueue(empty_database, rowq.Queue(owner), own_queue.name)
    queue.fill(10)
    seen: list[int] = []
    stats = queue.drain(lambda message: seen.append(message.data), batch_size=1)
    assert seen == list(range(10))
    assert (stats.processed, stats.stale) == (10, 0)
    tried = owner.execute("select last_value, is_called from public.tried").fetchone()
    assert tried == (11, True)
