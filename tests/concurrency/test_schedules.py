"""Many sessions that call maintain are killed, and each tick makes one message."""

import threading
from datetime import datetime, timedelta

import pytest

import rowq
from rowq.engines import engine_for_url
from tests.dice import dice, times
from tests.engines.base import Connection, Server
from tests.stored_times import pass_seconds

SESSIONS = 8
STEP = 60


class Maintainers:
    """Sessions that call maintain until no tick is due, in a thread each."""

    def __init__(self, server: Server, url: str, queue_name: str) -> None:
        self.server = server
        self.url = url
        self.queue_name = queue_name
        self.alive: dict[str, int] = {}
        self.done = threading.Event()
        self.faults: list[BaseException] = []

    def run(self) -> None:
        """Run them, and kill one after the other until they are done."""
        threads = [
            threading.Thread(target=self._live, args=(f"maintainer {number}",))
            for number in range(SESSIONS)
        ]
        for thread in threads:
            thread.start()
        chosen = dice("maintainers")
        while not self.done.wait(chosen.uniform(0.01, 0.1)):
            alive = list(self.alive.items())
            if alive:
                self.server.kill_session(chosen.choice(alive)[1])
        for thread in threads:
            thread.join(60)
        assert not self.faults, self.faults

    def _live(self, name: str) -> None:
        while not self.done.is_set():
            try:
                self._maintain(name)
            except Exception as error:
                if not engine_for_url(self.url).is_connection_lost(error):
                    self.faults.append(error)
                    self.done.set()

    def _maintain(self, name: str) -> None:
        connection = self.server.connect(self.url)
        self.alive[name] = self.server.session_id(connection)
        queue = rowq.Queue(connection)
        try:
            while not self.done.is_set():
                queue.maintain(self.queue_name)
                if not _due(queue, self.queue_name):
                    self.done.set()
        finally:
            self.alive.pop(name, None)
            connection.close()


@pytest.mark.slow("kills sessions", on="mariadb", ci="mariadb")
@pytest.mark.promise("P19", "P30", "P31")
@pytest.mark.timeout(300)
def test_killed_maintainers_make_one_message_per_tick(
    server: Server, database_url: str, connection: Connection, queue_name: str
) -> None:
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name)
    count = times(1000)
    made = queue.create_schedule(queue_name, "often", interval_seconds=STEP, missed="all")
    pass_seconds(connection, queue_name, count * STEP)
    Maintainers(server, database_url, queue_name).run()

    found: list[datetime] = []
    while messages := queue.dequeue_fast(queue_name, 1000):
        headers = [message.headers or {} for message in messages]
        found += [datetime.fromisoformat(one["tick"]) for one in headers]
    assert made.next_run_at is not None
    first = made.next_run_at - timedelta(seconds=count * STEP)
    expected = [first + timedelta(seconds=STEP) * number for number in range(len(found))]
    assert found == expected
    assert count <= len(found) <= count + 2


def _due(queue: rowq.Queue, queue_name: str) -> bool:
    [schedule] = queue.list_schedules(queue_name)
    assert schedule.next_run_at is not None
    return schedule.next_run_at <= datetime.now(schedule.next_run_at.tzinfo)
