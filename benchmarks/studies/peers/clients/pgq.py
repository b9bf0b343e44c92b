"""Runs PgQ by its SQL functions, with Debian's daemon pgqd as the ticker.

A consumer gets and finishes a batch, the events between two ticks. Each consumer gets all events,
so PgQ itself cannot share a queue between workers.
"""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.studies.peers.protocol import Producing, Talk, Tally, run_role, run_threads

CONSUMER = "bench"
TICK_SECONDS = 0.1
PAUSE = 0.05
_INSERT = "select pgq.insert_event(%s, 'message', %s)"
_INSERT_MANY = "select count(pgq.insert_event(%s, 'message', d)) from unnest(%s::text[]) d"
_SETTINGS = {
    "ticker_max_lag": f"{TICK_SECONDS} seconds",
    "ticker_max_count": "500",
    "ticker_idle_period": "1 minute",
}


def prepare(talk: Talk) -> Mapping[str, Any]:
    """Install the extension, create the queue, register the consumer."""
    with psycopg.connect(talk.url, autocommit=True) as connection:
        connection.execute("create extension pgq")
        connection.execute("select pgq.create_queue(%s)", [talk.queue])
        for name, value in _SETTINGS.items():
            connection.execute("select pgq.set_queue_config(%s, %s, %s)", [talk.queue, name, value])
        connection.execute("select pgq.register_consumer(%s, %s)", [talk.queue, CONSUMER])
        row = connection.execute("select pgq.version()").fetchone()
        assert row is not None
    return {"prepared": True, "version": row[0]}


def produce(talk: Talk) -> Mapping[str, Any]:
    """Add events by insert_event, several in one statement."""
    work = Producing(talk)
    with psycopg.connect(talk.url, autocommit=True) as connection:
        talk.ready()
        for messages in work.calls():
            texts = [json.dumps(message) for message in messages]
            if len(texts) == 1:
                connection.execute(_INSERT, [talk.queue, texts[0]])
            else:
                connection.execute(_INSERT_MANY, [talk.queue, texts])
    return work.result()


def consume(talk: Talk) -> Mapping[str, Any]:
    """Take a batch, handle its events and finish it, repeatedly."""
    tally = Tally(talk)
    with psycopg.connect(talk.url, autocommit=True) as connection:

        def turn() -> bool:
            found = connection.execute(
                "select pgq.next_batch(%s, %s)", [talk.queue, CONSUMER]
            ).fetchone()
            if found is None or found[0] is None:
                return False
            events = connection.execute(
                "select ev_data from pgq.get_batch_events(%s)", found
            ).fetchall()
            for (data,) in events:
                tally.handle(json.loads(data))
            connection.execute("select pgq.finish_batch(%s)", found)
            return True

        talk.ready()
        run_threads(talk, turn, PAUSE)
    return tally.result()


def maintain(talk: Talk) -> Mapping[str, Any]:
    """Run pgqd for this database."""
    program = shutil.which("pgqd")
    assert program is not None, "pgqd comes with Debian's package pgqd"
    where = talk.config["pg"]
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory, "pgqd.ini")
        config.write_text(
            "[pgqd]\n"
            f"base_connstr = host={where['host']} port={where['port']} user={where['user']}\n"
            f"initial_database = {where['database']}\ndatabase_list = {where['database']}\n"
            f"ticker_period = {TICK_SECONDS}\nsyslog = 0\n"
            f"logfile = {directory}/pgqd.log\npidfile = {directory}/pgqd.pid\n",
            "utf-8",
        )
        daemon = subprocess.Popen([program, "-q", str(config)], stdout=subprocess.DEVNULL)
        time.sleep(TICK_SECONDS)
        talk.ready()
        talk.stopping.wait()
        daemon.terminate()
        daemon.wait()
    return {}


if __name__ == "__main__":
    run_role({"prepare": prepare, "produce": produce, "consume": consume, "maintain": maintain})
