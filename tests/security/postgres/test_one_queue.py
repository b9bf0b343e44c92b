"""An account with the one-queue right of sql/RIGHTS.md can do nothing else."""

import psycopg
import pytest

from tests.security.postgres.conftest import Login, Session
from tests.security.recipes import recipe


@pytest.mark.promise("P16")
def test_function_for_one_queue_allows_no_other_queue(
    installed: str, superuser: Session, login: Login
) -> None:
    assert installed
    sender, shop = login("sender", "rowq_producer"), login("shop")
    superuser.execute("select rowq.create_queue('orders'), rowq.create_queue('payroll')")
    superuser.execute("grant create on schema public to sender")
    with psycopg.connect(sender, autocommit=True) as session:
        for statement in recipe("PostgreSQL"):
            session.execute(statement)
    with psycopg.connect(shop, autocommit=True) as session:
        assert session.execute("select public.send_order('a')").fetchone() is not None
        for own in ("select rowq.enqueue('payroll', 'a')", "select rowq.enqueue('orders', 'a')"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                session.execute(own)
    with (
        psycopg.connect(login("stranger"), autocommit=True) as session,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        session.execute("select public.send_order('a')")
    found = superuser.execute("select queue_name, ready from rowq.queue_stats()").fetchall()
    assert sorted(found) == [("orders", 1), ("payroll", 0)]
