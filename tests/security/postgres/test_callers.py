"""A caller of rowq's routines runs no object of another user."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest

import rowq
from rowq.tools import migrate
from tests.helpers.calls import call, call_one, enqueue
from tests.helpers.releases import BACK
from tests.security.postgres.conftest import Login, Session, Trap

pytestmark = pytest.mark.promise("P16")

TABLES = (
    "queue", "message", "ready", "delayed", "claim", "dead", "dedup", "finished", "archive",
    "floor", "limit_lock", "started", "topic_binding", "meta", "migration", "migration_log",
)  # fmt: skip
NUMBERS = ("smallint", "integer", "bigint", "real", "float8", "numeric")
MOMENTS = ("timestamptz", "timestamp", "date", "interval")
TEXTS = ("text", "name", "varchar", "bpchar")


@pytest.fixture
def consumer(owner: Session, login: Login) -> Iterator[Session]:
    del owner
    with psycopg.connect(login("consumer", "rowq_consumer"), autocommit=True) as session:
        yield session


def operators() -> Iterator[tuple[str, str, str, str]]:
    """Yield each operator that rowq's code could use: name, operands and result."""
    for kinds in (NUMBERS, MOMENTS, TEXTS):
        for left in kinds:
            for right in kinds:
                for name in ("<", "<=", "=", "<>", ">=", ">"):
                    yield name, left, right, "boolean"
                for name in ("+", "-", "*", "||"):
                    yield name, left, right, left


@pytest.mark.parametrize("path", ["pg_catalog, bait", "bait, pg_catalog"])
def test_waiting_uses_no_operator_or_function_of_the_path(
    owner: Session, consumer: Session, trap: Trap, path: str
) -> None:
    for place, (name, left, right, result) in enumerate(operators()):
        trap.set_up(f"bait.operator_{place}({left}, {right})", result, f"null::{result}")
        trap.attacker.execute(
            f"create operator bait.{name}"
            f" (leftarg = {left}, rightarg = {right}, function = bait.operator_{place})"
        )
    for signature, result in (
        ("clock_timestamp()", "timestamptz"),
        ("pg_sleep(float8)", "void"),
        ("pg_current_xact_id_if_assigned()", "xid8"),
        ("make_interval(secs float8)", "interval"),
        ("jsonb_agg(anyelement)", "jsonb"),
    ):
        trap.set_up(f"bait.{signature}", result, "" if result == "void" else f"null::{result}")
    consumer.execute(f"set search_path = {path}")
    call_one(consumer, "dequeue_wait", queue_name="q", wait_seconds=0.1)
    consumer.execute("reset search_path")
    enqueue(owner, "q", "a")
    consumer.execute(f"set search_path = {path}")
    assert call_one(consumer, "dequeue_wait", queue_name="q", wait_seconds=5).messages
    consumer.execute("reset search_path")
    assert not trap.has_sprung


def test_transactional_worker_uses_no_object_of_the_path(
    url: str, owner: Session, consumer: Session, trap: Trap
) -> None:
    for signature, result in (
        ("pg_current_xact_id_if_assigned()", "xid8"),
        ("pg_xact_status(xid8)", "text"),
    ):
        trap.set_up(f"bait.{signature}", result, f"null::{result}")
    trap.attacker.execute("create domain bait.text as pg_catalog.text check (bait.spring())")
    trap.attacker.execute("create domain bait.xid8 as pg_catalog.xid8 check (bait.spring())")
    enqueue(owner, "q", "a")
    owner.execute(f"alter database {owner.info.dbname} set search_path = bait, pg_catalog")
    as_consumer = url.replace("postgres@", f"{consumer.info.user}@")
    handled = []
    worker = rowq.Worker(
        as_consumer, "q", lambda *given: handled.append(given), transactional=True, drain=True
    )
    worker.run()
    assert len(handled) == 1
    assert not trap.has_sprung


@pytest.mark.parametrize("table", TABLES)
def test_no_role_may_use_a_row_type(consumer: Session, table: str) -> None:
    for kind in (f"rowq.{table}", f"rowq.{table}[]"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            consumer.execute(f"create temporary table stolen (one_row {kind})")


def test_no_role_may_use_an_archive_partitions_row_type(owner: Session, consumer: Session) -> None:
    enqueue(owner, "q", "a")
    claim_id = call_one(consumer, "dequeue_fast", queue_name="q").claim_id
    call(consumer, "complete", queue_name="q", claim_id=claim_id)
    assert call_one(consumer, "archive", queue_name="q").archived == 1
    query = """
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'rowq.archive'::regclass
    """
    ((partition,),) = owner.execute(query).fetchall()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        consumer.execute(f"create temporary table stolen (one_row rowq.{partition})")


@pytest.mark.parametrize(
    "setting", ["default_tablespace = 'pg_global'", "default_table_access_method = 'bait'"]
)
def test_caller_does_not_control_archive_storage(
    owner: Session, consumer: Session, setting: str
) -> None:
    if "bait" in setting:
        owner.execute("create access method bait type table handler heap_tableam_handler")
    enqueue(owner, "q", "a")
    claim_id = call_one(consumer, "dequeue_fast", queue_name="q").claim_id
    call(consumer, "complete", queue_name="q", claim_id=claim_id)
    consumer.execute(f"set {setting}")
    assert call_one(consumer, "maintain", queue_name="q").archived == 1
    method = """
        select distinct a.amname from pg_class c join pg_am a on a.oid = c.relam
        where c.relnamespace = 'rowq'::regnamespace and c.relkind = 'r'
    """
    assert owner.execute(method).fetchall() == [("heap",)]


def test_members_table_does_not_block_upgrade_or_rollback(
    installed: str, consumer: Session
) -> None:
    consumer.execute(f"create temporary table harmless_{uuid.uuid4().hex} (x integer)")
    assert migrate.rollback(installed, to=0, force=True).rolled_back == BACK
