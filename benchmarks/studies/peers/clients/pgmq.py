"""Runs pgmq by the class PGMQueue and the SQL of its package."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from pgmq import PGMQueue
from pgmq.install import get_embedded_install_sql, install_pgmq_sql

from benchmarks.studies.peers.protocol import Producing, Talk, Tally, run_role, run_threads

_LEASE_SECONDS = 600
_POLL_SECONDS = 1
_GROUP = "x-pgmq-group"


def _open(talk: Talk, connections: int) -> PGMQueue:
    where = talk.config["pg"]
    return PGMQueue(
        conn_string=None,
        host=where["host"],
        port=str(where["port"]),
        database=where["database"],
        username=where["user"],
        pool_size=connections,
        init_extension=False,
    )


def prepare(talk: Talk) -> Mapping[str, Any]:
    """Install the SQL and create the queue."""
    where = talk.config["pg"]
    install_pgmq_sql(
        get_embedded_install_sql(),
        host=where["host"],
        port=str(where["port"]),
        database=where["database"],
        username=where["user"],
    )
    queue = _open(talk, 1)
    queue.create_queue(talk.queue)
    queue.close()
    return {"prepared": True, "version": version("pgmq")}


def produce(talk: Talk) -> Mapping[str, Any]:
    """Add messages by send or send_batch."""
    work = Producing(talk)
    queue = _open(talk, 1)
    delay = talk.delay or None
    talk.ready()
    for messages in work.calls():
        if len(messages) == 1:
            queue.send(talk.queue, messages[0], delay=delay)
        else:
            headers = [{_GROUP: body["k"]} for body in messages] if talk.keys else None
            queue.send_batch(talk.queue, messages, headers, delay=delay)
    queue.close()
    return work.result()


def consume(talk: Talk) -> Mapping[str, Any]:
    """Read with poll in steps of 100 ms, and delete each handled batch."""
    tally = Tally(talk)
    queue = _open(talk, talk.workers)
    read = queue.read_grouped_with_poll if talk.keys else queue.read_with_poll

    def turn() -> bool:
        taken = read(talk.queue, vt=_LEASE_SECONDS, qty=talk.batch, max_poll_seconds=_POLL_SECONDS)
        for message in taken:
            tally.handle(message.message)
        if taken:
            queue.delete_batch(talk.queue, [message.msg_id for message in taken])
        return bool(taken)

    talk.ready()
    run_threads(talk, turn)
    queue.close()
    return tally.result()


if __name__ == "__main__":
    run_role({"prepare": prepare, "produce": produce, "consume": consume})
