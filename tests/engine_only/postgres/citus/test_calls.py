"""A call reaches the node of its queue in whatever form it is written."""

from contextlib import nullcontext

import pytest

from rowq.tools.engines.postgres.citus.nodes import Node
from tests.engine_only.postgres.citus.conftest import Open
from tests.helpers.calls import call_one

FORMS = {
    "a list": "select rowq.enqueue('{0}', 'x')",
    "a table": "select * from rowq.enqueue('{0}', 'x')",
    "a scalar subquery": "select (select outcome from rowq.enqueue('{0}', 'x'))",
    "a with clause": "with w as (select * from rowq.enqueue('{0}', 'x')) select * from w",
    "a lateral join": "select r.outcome from (values ('{0}')) v (q), rowq.enqueue(v.q, 'x') r",
    "an insert": "insert into pg_temp.mine select message_id from rowq.enqueue('{0}', 'x')",
    "a perform": "do $$ begin perform rowq.enqueue('{0}', 'x'); end $$",
    "an assignment": "do $$ declare v record; begin v := rowq.enqueue('{0}', 'x'); end $$",
    "a subtransaction": (
        "do $$ begin begin perform rowq.enqueue('{0}', 'x'); raise 'no';"
        " exception when others then perform rowq.enqueue('{0}', 'x'); end; end $$"
    ),
    "a function of the caller's": "select pg_temp.send('{0}')",
    "a trigger": "insert into pg_temp.told values ('{0}')",
    "an execute": "do $$ begin execute 'select rowq.enqueue($1, ''x'')' using '{0}'::text; end $$",
}
MADE = """
    create temp table mine (message_id bigint);
    create temp table told (queue_name text);
    create function pg_temp.send(p_name text) returns text language sql
    as $$ select outcome from rowq.enqueue(p_name, 'x') $$;
    create function pg_temp.tell() returns trigger language plpgsql
    as $$ begin perform rowq.enqueue(new.queue_name, 'x'); return new; end $$;
    create trigger tell after insert on told for each row execute function pg_temp.tell();
    """


@pytest.mark.parametrize("is_together", [False, True], ids=["alone", "in a transaction"])
def test_every_form_of_a_call_reaches_the_node_of_the_queue(
    nodes: tuple[Node, ...], open_node: Open, pair: dict[str, str], is_together: bool
) -> None:
    sent = dict.fromkeys(pair.values(), 0)
    for node in nodes:
        session = open_node(node)
        session.execute("set citus.enable_ddl_propagation to off")
        session.execute(MADE)
        # A plan that is kept has no value to carry a call by.
        session.execute("prepare kept (text) as select * from rowq.enqueue($1, 'x')")
        for name in pair.values():
            for text in FORMS.values():
                with session.transaction() if is_together else nullcontext():
                    session.execute(text.format(name))
                sent[name] += 1
            for _ in range(8):
                session.execute(f"execute kept ('{name}')")
                sent[name] += 1
    for place, name in pair.items():
        node = next(node for node in nodes if node.name == place)
        session = open_node(node)
        session.execute("set rowq.here = 'on'")
        assert call_one(session, "queue_stats", queue_name=name).ready == sent[name]
