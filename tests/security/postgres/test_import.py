"""rowq import runs no object of the source's owner with a superuser's rights."""

from collections.abc import Callable

import psycopg
import pytest

from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.migrate import migrate
from tests.cli.conftest import Ran, run_app
from tests.security.postgres.conftest import Login, Session, Trap

pytestmark = pytest.mark.promise("P16")

QUEUE = """
    create schema pgmq;
    create table pgmq.meta (queue_name varchar);
    insert into pgmq.meta values ('x');
    create table pgmq.q_x (
        msg_id bigint, read_ct int, enqueued_at timestamptz, vt timestamptz, message jsonb,
        headers jsonb
    );
    insert into pgmq.q_x select n, 0, now(), now(), to_jsonb(n) from generate_series(1, 3) n;
"""


def imported(url: str, *more: str) -> Ran:
    return run_app("import", "--from", "pgmq", "--into", "imported", "--create", *more, url=url)


def trigger_of_the_tenant(trap: Trap) -> None:
    """Let the tenant own the source, with a trigger on delete."""
    trap.attacker.execute(QUEUE)
    trap.set_up("bait.spring_trigger()", "trigger", "old")
    trap.attacker.execute(
        "create trigger planted before delete on pgmq.q_x for each row"
        " execute function bait.spring_trigger()"
    )


def view_of_the_tenant(trap: Trap) -> None:
    """Replace a table with a view: reading it is enough."""
    trap.attacker.execute(QUEUE)
    trap.attacker.execute("alter table pgmq.q_x rename to rows")
    trap.attacker.execute(
        "create view pgmq.q_x with (security_invoker)"
        " as select * from pgmq.rows where bait.spring()"
    )


def trigger_on_the_superusers_table(trap: Trap) -> None:
    """Give the tenant the trigger right on a table of the superuser."""
    trap.victim.execute(QUEUE)
    trap.victim.execute("grant usage on schema pgmq to tenant; grant trigger on pgmq.q_x to tenant")
    trap.set_up("bait.spring_trigger()", "trigger", "old")
    trap.attacker.execute(
        "create trigger planted before delete on pgmq.q_x for each row"
        " execute function bait.spring_trigger()"
    )


def function_in_a_view_of_the_superusers(trap: Trap) -> None:
    """Let a superuser's view call a function that the tenant may replace."""
    trap.victim.execute(QUEUE)
    trap.victim.execute("alter table pgmq.q_x rename to rows")
    trap.victim.execute(
        "create view pgmq.q_x as select * from pgmq.rows where bait.fold(message::text) > ''"
    )
    trap.set_up("bait.fold(text)", "text", "$1")


def inherited_by_the_tenant(trap: Trap) -> None:
    """Let a tenant's table in another schema inherit from the superuser's."""
    trap.victim.execute(QUEUE)
    trap.victim.execute("create schema heir authorization tenant")
    trap.victim.execute("create table heir.rows () inherits (pgmq.q_x)")
    trap.victim.execute("alter table heir.rows owner to tenant")
    trap.attacker.execute("insert into heir.rows select 9, 0, now(), now(), '1'::jsonb, null")
    trap.set_up("bait.spring_trigger()", "trigger", "old")
    trap.attacker.execute(
        "create trigger planted before delete on heir.rows for each row"
        " execute function bait.spring_trigger()"
    )


ATTACKS = (
    trigger_of_the_tenant,
    view_of_the_tenant,
    trigger_on_the_superusers_table,
    function_in_a_view_of_the_superusers,
    inherited_by_the_tenant,
)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
@pytest.mark.parametrize("options", [("--dry-run",), ("--remove",)], ids=str)
def test_import_as_a_superuser_runs_no_code_of_a_tenant(
    url: str, trap: Trap, attack: Callable[[Trap], None], options: tuple[str, ...]
) -> None:
    migrate(url)
    attack(trap)
    for more in ((), ("--from-url", url)):
        done = imported(url, *options, *more)
        assert not trap.has_sprung
        assert done.code == ExitCode.REFUSED, done.out
        assert done.err.startswith("rowq: RQ803 missing_privilege: ")
        assert "tenant" in done.err


def test_member_of_a_superuser_role_is_refused(
    url: str, trap: Trap, superuser: Session, login: Login
) -> None:
    migrate(url)
    trigger_of_the_tenant(trap)
    superuser.execute("create role chief superuser")
    clerk = login("clerk", "chief", "rowq_producer", "rowq_admin")
    superuser.execute("grant usage on schema pgmq to clerk; grant all on pgmq.q_x to clerk")
    superuser.execute("grant all on pgmq.meta to clerk")
    try:
        assert imported(clerk, "--remove").code == ExitCode.REFUSED
    finally:
        superuser.execute("drop role chief")
    assert not trap.has_sprung


def test_owner_of_the_tables_imports_them(
    url: str, tenant_url: str, tenant: Session, superuser: Session
) -> None:
    migrate(url)
    superuser.execute("grant rowq_producer, rowq_admin to tenant")
    tenant.execute(QUEUE)
    done = imported(tenant_url, "--remove", "--json")
    assert done.code == 0, done.err
    assert (done.row["enqueued"], done.row["removed"]) == (3, 3)


def test_superuser_imports_tables_of_superusers(url: str, superuser: Session) -> None:
    migrate(url)
    superuser.execute(QUEUE)
    done = imported(url, "--remove", "--json")
    assert done.code == 0, done.err
    assert (done.row["enqueued"], done.row["removed"]) == (3, 3)


def test_import_uses_no_operator_or_function_of_a_tenant(
    url: str, trap: Trap, superuser: Session
) -> None:
    migrate(url)
    superuser.execute(QUEUE)
    superuser.execute("grant create on schema public to tenant")
    superuser.execute(
        f"alter database {superuser.info.dbname} set search_path = public, pg_catalog"
    )
    trap.set_up("public.now()", "timestamptz", "pg_catalog.now()")
    trap.set_up("public.count(bigint)", "bigint", "1")
    trap.set_up("public.later(timestamptz, timestamptz)", "boolean", "false")
    trap.attacker.execute(
        "create operator public.> (leftarg = timestamptz, rightarg = timestamptz,"
        " function = public.later)"
    )
    trap.set_up("public.same(bigint, bigint)", "boolean", "true")
    trap.attacker.execute(
        "create operator public.= (leftarg = bigint, rightarg = bigint, function = public.same)"
    )
    done = imported(url, "--remove", "--json")
    assert done.code == 0, done.err
    assert not trap.has_sprung
    with psycopg.connect(url) as connection:
        assert connection.execute("select count(*) from pgmq.q_x").fetchone() == (0,)
