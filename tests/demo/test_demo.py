"""rowq demo: data, comparison and the installed program."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import rowq
from rowq.tools.command.demo import print_result
from rowq.tools.console.errors import CommandFailed
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.demo import ledger
from rowq.tools.demo.ledger import Killed
from rowq.tools.demo.report import Report, dollars
from rowq.tools.migrate import migrate
from tests.engines.base import Server

PROGRAM = str(Path(sys.executable).with_name("rowq"))
GOOD = Report(
    orders_in=3,
    orders_done=3,
    orders_redelivered=1,
    orders_left=0,
    expected_cents={"1997-01": 1177, "1997-02": 300},
    booked_cents={"1997-01": 1177, "1997-02": 300},
    enqueue_seconds=1.0,
    drain_seconds=1.0,
    killed=Killed(pid=1, claim_id=1, order_number=1),
)


def demo(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `rowq demo` in its own process."""
    inherited = {name: value for name, value in os.environ.items() if name != "ROWQ_URL"}
    return subprocess.run(
        [PROGRAM, "demo", *arguments],
        capture_output=True,
        text=True,
        env=inherited | environment,
        check=False,
    )


def tables(server: Server, url: str) -> set[str]:
    """Return the names of all tables."""
    connection = server.connect(url)
    with connection, connection.cursor() as cursor:
        cursor.execute("select table_schema, table_name from information_schema.tables")
        return {f"{schema}.{name}" for schema, name in cursor.fetchall()}


def test_data_has_all_orders_of_source() -> None:
    rows = list(ledger.rows())
    assert len(rows) == 69_659
    assert rows[0] == {
        "order": "1",
        "customer": "00001",
        "date": "1997-01-01",
        "cds": "1",
        "dollars": "11.77",
    }
    assert [int(row["order"]) for row in rows] == list(range(1, 69_660))
    assert len({row["customer"] for row in rows}) == 23_570
    assert (min(row["date"] for row in rows), max(row["date"] for row in rows)) == (
        "1997-01-01",
        "1998-06-30",
    )


def test_data_has_known_total_in_18_months() -> None:
    months = ledger.cents_per_month()
    assert len(months) == 18
    assert sum(months.values()) == 250_031_563


@pytest.mark.parametrize(("text", "expected"), [("11.77", 1177), ("0.00", 0), ("1286.01", 128_601)])
def test_cents_are_exact(text: str, expected: int) -> None:
    assert ledger.cents(text) == expected


@pytest.mark.parametrize("text", ["11", "11.7", "11.777", "", "x.yz"])
def test_cents_refuse_other_forms(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the type is the promise
        ledger.cents(text)


def test_dollars_have_two_decimals() -> None:
    assert [dollars(cents) for cents in (0, 5, 250_031_563)] == ["0.00", "0.05", "2,500,315.63"]


def test_correct_run_has_no_faults() -> None:
    assert GOOD.faults() == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (replace(GOOD, booked_cents={"1997-01": 1178, "1997-02": 300}), "1997-01: 11.77"),
        (replace(GOOD, booked_cents={"1997-01": 1177}), "1997-02: 3.00 in the file, 0.00 booked"),
        (replace(GOOD, booked_cents=dict(GOOD.booked_cents) | {"1999-01": 0}), "1999-01"),
        (replace(GOOD, booked_cents={"1997-01": 1176, "1997-02": 301}), "1997-02"),
        (replace(GOOD, orders_done=2), "3 orders in, but 2 done"),
        (replace(GOOD, orders_left=1), "3 of 3 orders are done, 1 are in the queue or dead"),
        (replace(GOOD, killed=None), "no worker was killed"),
        (replace(GOOD, orders_redelivered=0), "no order was redelivered"),
    ],
)
def test_discrepancies_are_faults(wrong: Report, said: str) -> None:
    assert any(said in fault for fault in wrong.faults())


@pytest.mark.parametrize("as_json", [True, False])
def test_fault_sets_exit_status_4_after_report(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    print_result(GOOD, Console(), as_json)
    with pytest.raises(CommandFailed, match=r"1997-02: 3\.00 in the file") as failed:
        print_result(replace(GOOD, booked_cents={"1997-01": 1177}), Console(), as_json)
    assert failed.value.code == ExitCode.INCOMPLETE
    assert ("DIFFERENT" in capsys.readouterr().out) is not as_json


def test_demo_on_private_server_is_correct_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    tmp_path.chmod(0o711)
    done = demo(
        TMPDIR=str(tmp_path), ROWQ_URL="postgresql://nobody@127.0.0.1:1/none_of_its_business"
    )
    assert done.returncode == 0, done.stderr
    assert "killed worker" in done.stdout
    assert done.stdout.count(" equal") == 19
    assert "2,500,315.63" in done.stdout
    assert "done exactly once  69,659" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_demo_on_database_drops_its_queue_and_table(empty_database: str, server: Server) -> None:
    refused = demo("--url", empty_database)
    assert (refused.returncode, "rowq migrate" in refused.stderr) == (ExitCode.NOT_INSTALLED, True)
    migrate(empty_database)
    before = tables(server, empty_database)

    done = demo("--json", "--url", empty_database)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["orders_in"], report["orders_done"], report["orders_left"]) == (
        69_659,
        69_659,
        0,
    )
    assert report["orders_redelivered"] >= 1
    assert report["booked_cents"] == report["expected_cents"] == ledger.cents_per_month()
    assert report["faults"] == []
    with rowq.connect(empty_database) as queue:
        assert queue.queue_stats() == []
    assert tables(server, empty_database) == before
