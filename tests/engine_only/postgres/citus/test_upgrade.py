"""A cluster goes on to a next release, where a carried routine has one more parameter and column.

The release is made up in a clone, whose own rowq upgrades; callers know the one before only.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from threading import Event, Thread

import psycopg
import pytest

from rowq.postgres.citus.install import install
from rowq.postgres.citus.nodes import nodes_of
from sql.generate.release import release
from tests.engine_only.postgres.citus.helpers import BY_ITSELF, on_each, place_of
from tests.engines.base import Connection, wait_until
from tests.engines.postgres.citus import on_node
from tests.helpers.next_version import edit
from tests.helpers.releases import NEWEST, begin_next
from tests.release.test_next_version import Clone

pytestmark = pytest.mark.timeout(900)

PYTHON = str(Path(sys.prefix) / "bin" / "python")
ROWQ = str(Path(sys.prefix) / "bin" / "rowq")
QUEUES = 6
STOPPED = """
import os, sys
from itertools import islice
from rowq.postgres.citus.install import begun
for step in islice(begun(sys.argv[1]).steps(), int(sys.argv[2])):
    step()
os._exit(9)
"""
STEPS = """
import sys
from rowq.postgres.citus.install import begun
print(len(list(begun(sys.argv[1]).steps())))
"""
LEFT = """
    select p.proname
    from pg_proc p
    where p.pronamespace = 'rowq_citus'::regnamespace
      and p.proname ~ '_[0-9]+$'
      and p.proname !~ %s
    """
SIGNATURES = """
    select n.nspname, pg_get_function_identity_arguments(p.oid), pg_get_function_result(p.oid)
    from pg_proc p
    join pg_namespace n on n.oid = p.pronamespace
    where p.proname = 'list_topics'
    """


@pytest.fixture(scope="session")
def next_release(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """Return a clone with a next release: list_topics limits its rows, and says how many."""
    clone = Clone(tmp_path_factory.mktemp("next"))
    migrations = clone.root / "migrations" / "postgres"
    release(migrations)
    drop = "drop function if exists rowq.list_topics(text);"
    begin_next(migrations, "wider", statement=(drop, "select 1;"))
    edit(
        clone.root / "sql" / "contract.toml",
        'parameters = [{ name = "queue_name", default = "null" }]\n'
        'columns = ["queue_name", "topic_pattern"]\n',
        'parameters = [{ name = "queue_name", default = "null" },'
        ' { name = "max_count", default = "100" }]\n'
        'columns = ["queue_name", "position", "topic_pattern"]\n',
    )
    routine = clone.root / "sql" / "postgres" / "routines" / "list_topics.sql"
    edit(
        routine,
        "(p_queue_name text default null)\nreturns table (queue_name text, topic_pattern text)",
        "(\n    p_queue_name text default null,\n    p_max_count  integer default 100\n)\n"
        'returns table (queue_name text, "position" integer, topic_pattern text)',
    )
    edit(
        routine,
        "select q.queue_name, b.topic_pattern\n",
        "select q.queue_name, 1, b.topic_pattern\n",
    )
    edit(
        routine,
        '"C", b.topic_pattern collate "C";',
        '"C", b.topic_pattern collate "C"\n    limit p_max_count;',
    )
    clone.generate()
    return clone


def calls(name: str) -> Iterator[str]:
    """Yield calls of what both releases have, about one queue and about all."""
    yield f"select rowq.enqueue('{name}', 'x')"
    yield (
        f"select rowq.complete('{name}', d.claim_id)"
        f" from (select distinct claim_id from rowq.dequeue_fast('{name}', 2)) d"
    )
    yield f"select queue_name, topic_pattern from rowq.list_topics('{name}')"
    yield "select queue_name, topic_pattern from rowq.list_topics()"
    yield "select rowq.publish('t', 'x')"
    yield f"select ready from rowq.queue_stats('{name}')"
    yield f"select rowq.peek('{name}', 1)"
    yield "select rowq.health()"


def work(url: str, until: Event, failed: list[str], done: Counter[str]) -> None:
    """Call everything, again and again, and note what fails."""
    with psycopg.connect(url, autocommit=True) as session:
        for number in count():
            for text in calls(f"orders_{number % QUEUES}"):
                if until.is_set():
                    return
                try:
                    session.execute(text)
                except psycopg.Error as error:
                    failed.append(f"{url}: {text}: {error}")
                done[url] += 1


def prepare(url: str) -> None:
    """Install today's release, with queues on several nodes."""
    install(url)
    with psycopg.connect(url, autocommit=True) as session:
        for number in range(QUEUES):
            session.execute("select rowq.create_queue(%s)", [f"orders_{number}"])
            session.execute("select rowq.bind_topic(%s, 't')", [f"orders_{number}"])
        assert len({place_of(session, f"orders_{number}") for number in range(QUEUES)}) > 1


def nothing_old_is_left(url: str, clone: Clone) -> None:
    """Hold that each node has the next release, and nothing of the one before."""
    with ExitStack() as stack:
        for node, session in on_each(url, stack):
            assert session.execute(LEFT, [f"_{NEWEST + 1}$"]).fetchall() == [], node.name
            assert set(session.execute(SIGNATURES).fetchall()) == {
                (
                    schema,
                    "p_queue_name text, p_max_count integer",
                    'TABLE(queue_name text, "position" integer, topic_pattern text)',
                )
                for schema in ("rowq", "rowq_node")
            }
            rows = session.execute("select * from rowq.list_topics(p_max_count => 2)").fetchall()
            assert {row[1] for row in rows} == {1}
            for text in calls("orders_0"):
                session.execute(text)
    clone.does(ROWQ, "citus", "status", "--url", url)


def test_callers_of_what_was_there_notice_no_upgrade(
    empty_cluster: str, next_release: Clone
) -> None:
    prepare(empty_cluster)
    urls = [on_node(empty_cluster, node) for node in nodes_of(empty_cluster)]
    until, failed, done = Event(), list[str](), Counter[str]()
    threads = [Thread(target=work, args=(url, until, failed, done)) for url in urls]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: min(done[url] for url in urls) > 20, "calls are made", 60)
        said = next_release.does(ROWQ, "citus", "upgrade", "--url", empty_cluster)
        assert said.count("installed migration") == len(urls)
        after = done.copy()
        wait_until(lambda: min(done[u] - after[u] for u in urls) > 20, "calls are made", 60)
    finally:
        until.set()
        for thread in threads:
            thread.join()
    assert failed == []
    nothing_old_is_left(empty_cluster, next_release)


def test_an_upgrade_that_stops_after_any_step_goes_on(
    empty_cluster: str, next_release: Clone
) -> None:
    prepare(empty_cluster)
    with ExitStack() as stack:
        sessions: list[Connection] = [one for _, one in on_each(empty_cluster, stack)]
        view = "create view public.seen as select * from rowq.{}()"
        sessions[-1].execute(BY_ITSELF)
        sessions[-1].execute(view.format("list_topics"))
        refused = next_release.run(ROWQ, "citus", "upgrade", "--url", empty_cluster)
        assert "RQ808" in refused.stderr
        assert "view public.seen uses list_topics" in refused.stderr
        sessions[-1].execute("drop view public.seen")
        sessions[-1].execute(view.format("queue_stats"))

        steps = int(next_release.does(PYTHON, "-c", STEPS, empty_cluster))
        assert steps > 3 * len(sessions)
        for number in range(1, steps):
            done = next_release.run(PYTHON, "-c", STOPPED, empty_cluster, str(number))
            assert done.returncode == 9, done.stderr
            for session in sessions:
                for text in calls(f"orders_{number % QUEUES}"):
                    session.execute(text)
        next_release.does(ROWQ, "citus", "upgrade", "--url", empty_cluster)
        nothing_old_is_left(empty_cluster, next_release)
        seen = sessions[-1].execute("select count(*) from public.seen").fetchone()
        assert seen == (QUEUES,)
