"""Each PostgreSQL statement concerns the rows of one queue."""

import re

import pytest

from tests.static.each import for_each
from tests.static.postgres_statements import EVERYWHERE, RULES, broken, readers, statements_of
from tests.static.sources import Unit, sql_units

UNITS = sql_units("postgres", "internal", "routines", "overloads")

_ONE_FOR_ALL = (
    "maintain finds all busy queues by one statement: one per queue takes 15 to 40"
    " times the CPU (200 queues: 4 ms to 120)"
)
_WRITES_ALL = (
    "one statement writes all rows of a batch: inserts from arrays take 1.06 times the CPU with 50"
    " messages with headers, and 1.10 with 10 of which half are delayed (0.9 to 1.3 over rounds)"
)
_PAGE = (
    "the claims of all queues in order are one page: a query per queue takes 2.0 times the CPU"
    " (300 queues: 2.5 ms to 5.4)"
)
_STATS = (
    "the counts of all queues are one statement: one per queue takes 4.5 times the CPU"
    " (10,000 queues: 110 ms to 490)"
)
_SCHEDULES = (
    "the schedules of all queues are a join that reads two tables once: a query per queue"
    " takes 5.8 times the CPU (300 queues: 0.8 ms to 3.2)"
)
_PASSED_ON = (
    "the settings are read with the group: a separate query adds 1 statement per ended message with"
    " a group, which may take 4 more than one without"
)
_MADE_READY = (
    "expiries are recorded with ready messages: a query for the lane adds 1 statement per ended"
    " predecessor, which may take 4 more than others"
)
EXCEPTIONS = {
    ("busy_queues", "c"): _ONE_FOR_ALL,
    ("busy_queues", "e"): _ONE_FOR_ALL,
    ("list_claims", "b"): _PAGE,
    ("list_claims", "c"): _PAGE,
    ("list_claims", "e"): _PAGE,
    ("list_schedules", "c"): _SCHEDULES,
    ("list_schedules", "e"): _SCHEDULES,
    ("pass_group_slots", "e"): _PASSED_ON,
    ("push_ready", "d"): _MADE_READY,
    ("queue_stats", "c"): _STATS,
    ("queue_stats", "e"): _STATS,
    ("store_unkeyed", "d"): _WRITES_ALL,
}
"""By routine and rule: why a statement breaks it, and the cost of keeping it.

CPU of the backend on PostgreSQL 18, old and new in turn, median of 3 to 5 rounds.
"""


def written(statements: str) -> str:
    """Return a routine with these statements."""
    return f"create function rowq.f(p_queue_id integer)\nas $$\nbegin\n{statements}\nend;\n$$;\n"


@for_each(UNITS)
def test_statement_concerns_one_queue(unit: Unit) -> None:
    found = {
        (rule, what) for rule, what in broken(unit.text) if (unit.stem, rule) not in EXCEPTIONS
    }
    assert not found, "\n".join(f"({rule}) {RULES[rule]}: {what}" for rule, what in sorted(found))


@for_each(sorted(EXCEPTIONS))
def test_exception_is_needed_and_has_a_figure(stem: str, rule: str) -> None:
    [unit] = [unit for unit in UNITS if unit.stem == stem]
    assert rule in {rule for rule, _ in broken(unit.text)}
    assert re.search(r"\d", EXCEPTIONS[stem, rule])


@for_each(unit for unit in sql_units("postgres", "tables") if "create table " in unit.text)
def test_keys_begin_with_queue_id(unit: Unit) -> None:
    if unit.stem not in EVERYWHERE:
        keys = re.findall(r"primary key \((\w+)|create index .* \((\w+)", unit.text)
        assert {name or other for name, other in keys} == {"queue_id"}


def test_readers_are_found() -> None:
    assert {"internal_read_floor", "internal_reap", "enqueue", "health"} <= readers()
    assert not {"internal_from_microseconds", "internal_is_past", "next_ticks"} & readers()


def test_statements_are_split_like_plpgsql() -> None:
    text = written(
        """
        case v_place
            when 'a' then
                v_x := case when v_y then 1 else 2 end;
            else
                perform 1;
        end case;
        if exists (select from rowq.dead d where d.queue_id = p_queue_id) then
            return;
        end if;
        """
    )
    assert [" ".join(statement[:4]) for statement in statements_of(text)] == [
        "case v_place when '",
        "v_x := case when",
        "perform 1",
        "if exists ( select",
        "return",
    ]


GOOD = {
    "its queue_id": "delete from rowq.dead d where d.queue_id = p_queue_id and d.message_id = 1;",
    "that of another table": """
        select count(*) into v_count from rowq.dead d
        join rowq.message m on m.queue_id = d.queue_id and m.message_id = d.message_id
        where d.queue_id = v_queue.queue_id;
        """,
    "that of the query around it": """
        perform (select m.body from rowq.message m where m.queue_id = d.queue_id)
        from rowq.dead d where d.queue_id = p_queue_id;
        """,
    "an insert with queue_id first": """
        insert into rowq.ready (queue_id, lane, message_id)
        select f.queue_id, f.lane, 1 from rowq.floor f where f.queue_id = v_queue_id;
        insert into rowq.dead (queue_id, message_id) values (p_queue_id, 1)
        on conflict (queue_id, message_id) do update set last_error = left(excluded.last_error, 9);
        """,
    "a call before the statement": """
        v_from := rowq.internal_read_floor(p_queue_id, -1::smallint);
        update rowq.claim c set errors = array_remove(c.errors, v_now)
        where c.queue_id = p_queue_id and c.claim_id >= v_from;
        """,
    "a with over one table": """
        with gone as (
            delete from rowq.dead d where d.queue_id = p_queue_id returning d.message_id
        )
        select array_agg(g.message_id) into v_ids from gone g;
        """,
    "tables that are everywhere": """
        select q.queue_name from rowq.topic_binding b join rowq.queue q on q.queue_id = b.queue_id;
        """,
    "a lock of tables": "lock table rowq.queue, rowq.ready in exclusive mode;",
}


@pytest.mark.parametrize("statement", GOOD.values(), ids=GOOD)
def test_correct_statement_passes(statement: str) -> None:
    assert broken(written(statement)) == set()


BAD = {
    "a clock in set": (
        "a",
        "update rowq.claim c set lease_until = greatest(c.lease_until, clock_timestamp())"
        " where c.queue_id = p_queue_id;",
    ),
    "the transaction's time in set": (
        "a",
        "update rowq.claim c set lease_until = current_timestamp where c.queue_id = p_queue_id;",
    ),
    "a routine in the condition of a delete": (
        "a",
        "delete from rowq.dead d where d.queue_id = p_queue_id"
        " and d.message_id in (select u.id from unnest(rowq.internal_is_past(v_ids)) u (id));",
    ),
    "a clock where there is a conflict": (
        "a",
        "insert into rowq.result (queue_id, message_id) values (p_queue_id, 1)"
        " on conflict (queue_id, message_id) do update set finished_at = clock_timestamp();",
    ),
    "a floor that is read inside": (
        "b",
        "perform 1 from rowq.claim c where c.queue_id = p_queue_id"
        " and c.claim_id >= rowq.internal_read_floor(p_queue_id, -1::smallint);",
    ),
    "a routine beside a table": (
        "b",
        "perform m.body from rowq.message m"
        " cross join lateral rowq.internal_locate_messages(p_queue_id, m.message_id)"
        " where m.queue_id = p_queue_id;",
    ),
    "no queue_id": ("c", "delete from rowq.dead d where d.message_id = 1;"),
    "queue_id of rows that come from elsewhere": (
        "c",
        "perform 1 from unnest(v_parts) p (queue_id) join rowq.dead d on d.queue_id = p.queue_id;",
    ),
    "two tables that name each other only": (
        "c",
        "perform 1 from rowq.dead d join rowq.message m on m.queue_id = d.queue_id"
        " and d.queue_id = m.queue_id;",
    ),
    "a table inside that names none": (
        "c",
        "perform 1 from rowq.dead d where d.queue_id = p_queue_id"
        " and exists (select from rowq.message m where m.message_id = d.message_id);",
    ),
    "a condition that names none": (
        "c",
        "if exists (select from rowq.dead d where d.message_id = 1) then return; end if;",
    ),
    "an insert of other rows' queue_id": (
        "c",
        "insert into rowq.dead (queue_id, message_id)"
        " select m.queue_id, m.message_id from unnest(v_messages) m;",
    ),
    "an insert without queue_id first": (
        "c",
        "insert into rowq.dead (message_id, queue_id) values (1, p_queue_id);",
    ),
    "a with that writes one table and reads another": (
        "d",
        "with gone as (delete from rowq.dead d where d.queue_id = p_queue_id"
        " returning d.message_id) insert into rowq.ready (queue_id, message_id)"
        " select p_queue_id, g.message_id from gone g;",
    ),
    "queue beside a queue's table": (
        "e",
        "perform q.queue_name from rowq.queue q where q.queue_id = p_queue_id"
        " and exists (select from rowq.dead d where d.queue_id = p_queue_id);",
    ),
}


@pytest.mark.parametrize(("rule", "statement"), BAD.values(), ids=BAD)
def test_broken_rule_is_found(rule: str, statement: str) -> None:
    assert {rule for rule, _ in broken(written(statement))} == {rule}
