"""A bare table: rows added by insert or COPY and removed by `delete ... returning`.

No lease, no retry, no maintenance: a crashed worker's messages are lost.
"""

import json
import threading
from collections.abc import Mapping
from typing import Any

import psycopg

from benchmarks.studies.peers.protocol import Producing, Talk, Tally, run_role, run_threads

_PAUSE = 0.01
_TABLE = (
    "create table bare_message ("
    " message_id bigint generated always as identity primary key, body text not null)"
)
_TAKE = (
    "delete from bare_message m where m.message_id = any (array("
    " select x.message_id from bare_message x order by x.message_id limit %s"
    " for update skip locked)) returning m.body"
)


def prepare(talk: Talk) -> Mapping[str, Any]:
    """Create the table."""
    with psycopg.connect(talk.url) as connection:
        connection.execute(_TABLE)
    return {"prepared": True, "version": psycopg.__version__}


def produce(talk: Talk) -> Mapping[str, Any]:
    """Add one row by insert, several by COPY."""
    work = Producing(talk)
    with psycopg.connect(talk.url, autocommit=True) as connection:
        talk.ready()
        for messages in work.calls():
            texts = [json.dumps(message) for message in messages]
            if len(texts) == 1:
                connection.execute("insert into bare_message (body) values (%s)", texts)
                continue
            with (
                connection.cursor() as cursor,
                cursor.copy("copy bare_message (body) from stdin") as copy,
            ):
                for text in texts:
                    copy.write_row((text,))
    return work.result()


def consume(talk: Talk) -> Mapping[str, Any]:
    """Delete rows; each thread has its own connection."""
    tally = Tally(talk)
    local = threading.local()
    batch = [talk.batch]

    def turn() -> bool:
        if not hasattr(local, "connection"):
            local.connection = psycopg.connect(talk.url, autocommit=True)
        rows = local.connection.execute(_TAKE, batch).fetchall()
        for (body,) in rows:
            tally.handle(json.loads(body))
        return bool(rows)

    talk.ready()
    run_threads(talk, turn, _PAUSE)
    return tally.result()


if __name__ == "__main__":
    run_role({"prepare": prepare, "produce": produce, "consume": consume})
