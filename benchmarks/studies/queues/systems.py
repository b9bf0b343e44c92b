"""The compared systems, each with the statements of its client."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path

import psycopg

from benchmarks.harness.load import BODY_SQL
from benchmarks.studies.queues.statements import (
    LEASE_SECONDS,
    NUMBERS_SQL,
    Statements,
    json_objects,
    text_array,
)
from rowq.tools.migrate import migrate


@dataclass(frozen=True, slots=True)
class System:
    """One system; origin: where it comes from, in words."""

    name: str
    version: str
    origin: str
    statements: Statements
    install: Callable[[str], object]


def rowq() -> System:
    """Return rowq as `rowq migrate` installs it."""
    complete = "select message_id, outcome from rowq.complete($1::text, $2::bigint)"
    return System(
        "rowq",
        version("rowq"),
        "this checkout",
        Statements(
            create="select queue_name from rowq.create_queue($1::text)",
            enqueue="select message_id from rowq.enqueue($1::text, $2::text)",
            enqueue_batch="select message_id from rowq.enqueue_batch($1::text, $2::jsonb)",
            bodies=json_objects,
            fill="select count(*) from rowq.enqueue_batch($1::text, ("
            f" select jsonb_agg(jsonb_build_object('body', {BODY_SQL},"
            " 'delay_seconds', $4::integer,"
            f" 'priority', case when $4::integer > 0 then 0 else 5 end)) from {NUMBERS_SQL}))",
            dequeue="select message_id, body, claim_id"
            f" from rowq.dequeue_fast($1::text, $2::integer, 'bench', {LEASE_SECONDS})",
            complete=complete,
            complete_many=complete,
            by_claim=True,
            waiting="select ready from rowq.queue_stats($1::text, 100000000)",
            complete_and_dequeue="select message_id, body, claim_id, outcome"
            " from rowq.complete_and_dequeue($1::text, $2::bigint, p_batch_size => $3::integer,"
            f" p_worker_name => 'bench', p_lease_seconds => {LEASE_SECONDS})",
            maintain="select queue_name from rowq.maintain($1::text)",
        ),
        migrate,
    )


def bare() -> System:
    """Return the minimum cost: insert a row, and delete it to dequeue it."""
    return System(
        "bare",
        "",
        "an insert and a delete with returning, no queue",
        Statements(
            create="select $1::text",
            enqueue="insert into bare.message (body) select $2::text where $1::text <> ''",
            enqueue_batch="insert into bare.message (body)"
            " select unnest($2::text[]) where $1::text <> ''",
            bodies=text_array,
            fill="insert into bare.message (body)"
            f" select {BODY_SQL} from {NUMBERS_SQL} where $1::text <> '' and $4::integer = 0",
            dequeue="delete from bare.message m where m.message_id = any (array("
            " select x.message_id from bare.message x where $1::text <> ''"
            " order by x.message_id limit $2::integer for update skip locked))"
            " returning m.message_id, m.body, null",
            complete=None,
            complete_many=None,
            by_claim=True,
            waiting="select count(*) from bare.message where $1::text <> ''",
        ),
        _install_bare,
    )


def _install_bare(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("create schema bare")
        connection.execute(
            "create table bare.message ("
            " message_id bigint generated always as identity primary key, body text not null)"
        )


def pgmq(path: Path | None) -> System | None:
    """Return pgmq from a file with its SQL or from its package, None if both are missing."""
    if path is not None:
        text = path.read_text("utf-8")
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return _pgmq(text, "of a given file", f"{path.name}, sha256 {digest}")
    try:
        paths = {str(file): file for file in files("pgmq") or []}
        return _pgmq(
            paths["pgmq/sql/pgmq.sql"].read_text("utf-8"),
            paths["pgmq/sql/pgmq.sql.version"].read_text("utf-8").strip(),
            f"SQL carried by the package pgmq {version('pgmq')}",
        )
    except (PackageNotFoundError, KeyError):
        return None


def _pgmq(text: str, number: str, origin: str) -> System:
    def install(url: str) -> None:
        with psycopg.connect(url) as connection:
            connection.execute(text.encode())

    return System(
        "pgmq",
        number,
        origin,
        Statements(
            create="select pgmq.create($1::text)",
            enqueue="select pgmq.send($1::text, $2::jsonb)",
            enqueue_batch="select pgmq.send_batch($1::text, $2::jsonb[])",
            bodies=text_array,
            fill="select count(*) from pgmq.send_batch($1::text,"
            f" (select array_agg(({BODY_SQL})::jsonb) from {NUMBERS_SQL}), $4::integer)",
            dequeue="select msg_id, message::text, null"
            f" from pgmq.read($1::text, {LEASE_SECONDS}, $2::integer)",
            complete="select pgmq.delete($1::text, $2::bigint)",
            complete_many="select pgmq.delete($1::text, $2::bigint[])",
            by_claim=False,
            waiting="select queue_visible_length from pgmq.metrics($1::text)",
        ),
        install,
    )
