"""The check of SQL Server's plans finds faults, without a server."""

import pytest

from tests.engine_only.sqlserver.showplan import _plans, faults

SPACE = "http://schemas.microsoft.com/sqlserver/2004/07/showplan"


def plan_of(operator: str, table: str, *columns: str, range_columns: tuple[str, ...] = ()) -> str:
    """Return a plan with one operator that seeks by columns, and by a range of others."""
    prefix = _columns("Prefix", columns)
    start = _columns("StartRange", range_columns)
    return f"""<ShowPlanXML xmlns="{SPACE}"><StmtSimple StatementText="select">
        <RelOp PhysicalOp="{operator}"><IndexScan>
        <SeekPredicates><SeekPredicateNew><SeekKeys>{prefix}{start}</SeekKeys></SeekPredicateNew>
        </SeekPredicates><Object Schema="[rowq]" Table="[{table}]"/></IndexScan></RelOp>
        </StmtSimple></ShowPlanXML>"""


def _columns(part: str, names: tuple[str, ...]) -> str:
    if not names:
        return ""
    found = "".join(f'<ColumnReference Column="{name}"/>' for name in names)
    return f"<{part}><RangeColumns>{found}</RangeColumns></{part}>"


SEEK = "Clustered Index Seek"


@pytest.mark.parametrize(
    "xml",
    [
        plan_of(SEEK, "message", "queue_id", "message_id"),
        plan_of(SEEK, "leased", "queue_id", range_columns=("claim_id",)),
        plan_of(SEEK, "ready", "queue_id", "lane", range_columns=("seq",)),
        plan_of(SEEK, "deferred", "queue_id"),
        plan_of("Clustered Index Insert", "message"),
    ],
    ids=["whole key", "range", "three columns", "not in the list", "insert"],
)
def test_seek_by_key_is_accepted(xml: str) -> None:
    assert faults(list(_plans(xml))) == []


@pytest.mark.pitfall("sqlserver 19")
@pytest.mark.parametrize(
    "xml",
    [
        plan_of(SEEK, "message", "queue_id"),
        plan_of(SEEK, "successor", "queue_id"),
        plan_of("Index Seek", "dead"),
        plan_of("Clustered Index Scan", "message"),
        plan_of("Key Lookup", "message", "queue_id", "message_id"),
    ],
    ids=["message by queue", "successor by queue", "nothing", "scan", "look-up"],
)
def test_seek_of_whole_queue_scan_and_lookup_are_faults(xml: str) -> None:
    assert faults(list(_plans(xml)))
    table = "message" if "message" in xml else "successor" if "successor" in xml else "dead"
    if "Scan" not in xml and "Lookup" not in xml:
        assert not faults(list(_plans(xml)), walked=frozenset({table}))
