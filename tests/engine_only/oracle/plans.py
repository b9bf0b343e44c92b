"""Plans in v$sql_plan of the statements of rowq's packages."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.engines.base import Connection
from tests.engines.oracle.server import OracleServer

_STATEMENTS = """
    select s.sql_id, s.child_number, s.sql_text
    from v$sql s
    join dba_objects o on o.object_id = s.program_id
    where o.owner = :owner
      and o.object_name like 'ROWQ%'
      and s.parsing_schema_name = :owner
      and s.command_type in (2, 3, 6, 7, 189)
      and s.executions > 0
    """
_STEPS = """
    select p.operation, p.options, p.object_owner, p.object_name, p.access_predicates
    from v$sql_plan p
    where p.sql_id = :sql_id and p.child_number = :child
    order by p.id
    """
_SHOWN = """
    select t.plan_table_output
    from table(dbms_xplan.display_cursor(:sql_id, :child, 'basic +predicate +note')) t
    """
_READS = """
    select v.value
    from v$sesstat v
    join v$statname n on n.statistic# = v.statistic#
    where v.sid = :session_id and n.name = 'session logical reads'
    """

SMALL = frozenset({"ROWQ_QUEUE", "ROWQ_META", "ROWQ_LANE", "ROWQ_SCHEDULE", "ROWQ_TOPIC_BINDING"})
"""Tables of a few rows, for which any plan is good."""

_WHOLE = {"FULL SCAN", "FAST FULL SCAN", "SKIP SCAN", "FULL SCAN DESCENDING"}


@dataclass(frozen=True)
class Step:
    """One line of a plan."""

    operation: str
    options: str
    table: str
    access: str


@dataclass(frozen=True)
class Plan:
    """The plan of a statement; shown: the output of dbms_xplan."""

    text: str
    steps: tuple[Step, ...]
    shown: str

    def uses(self, table: str) -> bool:
        """Return whether a table, or an index of it, is read or changed."""
        return any(step.table.startswith(table) for step in self.steps)

    def faults(self) -> Iterator[str]:
        """Yield the reasons why the plan locks or reads too much."""
        hot = [step for step in self.steps if step.table.startswith("ROWQ_")]
        hot = [step for step in hot if not step.table.startswith(tuple(SMALL))]
        for step in hot:
            if (step.operation, step.options) == ("TABLE ACCESS", "FULL"):
                yield f"all of {step.table} is read"
            if step.operation == "INDEX" and step.options in _WHOLE:
                yield f"{step.options.lower()} of {step.table}"
            if "BATCHED" in step.options and "FOR UPDATE" in self.operations:
                yield f"{step.table} is read in batches, and locked in another order"
        # A sort of the few rows that a routine has collected or counted is good.
        is_short = self.operations & {"COLLECTION ITERATOR", "WINDOW", "COUNT"}
        is_short = is_short - ({"WINDOW", "COUNT"} if "FOR UPDATE" in self.operations else set())
        sorts = [
            step for step in self.steps if step.operation == "SORT" and "ORDER" in step.options
        ]
        if hot and sorts and not is_short:
            yield "rows are sorted, and so read and locked before the first is fetched"

    @property
    def operations(self) -> set[str]:
        """The operations without their options."""
        return {step.operation for step in self.steps}


def plans(server: OracleServer, connection: Connection) -> list[Plan]:
    """Return the plans of all statements that rowq's packages of this account have run."""
    found = []
    for sql_id, child, text in server.query(_STATEMENTS, owner=connection.username.upper()):
        steps = tuple(
            Step(operation, options or "", name or "", access or "")
            for operation, options, _, name, access in server.query(
                _STEPS, sql_id=sql_id, child=child
            )
        )
        shown = "\n".join(line for (line,) in server.query(_SHOWN, sql_id=sql_id, child=child))
        found.append(Plan(" ".join(text.lower().split()), steps, shown))
    return found


def reads(server: OracleServer, connection: Connection) -> int:
    """Return the number of blocks that a session has read, in memory or not."""
    return int(server.query(_READS, session_id=connection.session_id)[0][0])
