"""The contract describes exactly the existing tables and columns."""

import pytest

from rowq.tools.engines.oracle.packages import packages
from rowq.tools.migrate import comments
from tests.static.sources import CONTRACT, ENGINES, SQL, sql_units


@pytest.mark.parametrize("engine", ENGINES)
def test_contract_describes_every_table_and_column(engine: str) -> None:
    made = {unit.stem for unit in sql_units(engine, "tables") if "\ncreate table " in unit.text}
    assert comments.tables(SQL / engine).keys() == made
    described = comments.columns(SQL / engine)
    assert {table for table, _ in described} == made
    assert ("ready", "lane") in described
    assert all(described.values())


def test_contract_describes_only_existing_tables_and_columns() -> None:
    tables = {table for engine in ENGINES for table in comments.tables(SQL / engine)}
    assert tables == CONTRACT["tables"].keys()
    columns = [column for engine in ENGINES for column in comments.columns(SQL / engine)]
    known = {name for _, name in columns} | {".".join(column) for column in columns}
    assert set(CONTRACT["table_columns"]) <= known


def test_descriptions_fit_every_engine() -> None:
    texts = [
        *(entry["purpose"] for entry in CONTRACT["routine"].values()),
        *CONTRACT["tables"].values(),
        *CONTRACT["table_columns"].values(),
    ]
    for text in texts:
        assert len(text) <= 250
        assert text.isascii()
        assert "\\" not in text


def test_oracle_specifications_have_the_purposes() -> None:
    for name, text in packages(SQL / "oracle"):
        for routine, entry in CONTRACT["routine"].items():
            if not name.endswith("_body.sql") and f"    procedure {routine}(" in text:
                assert f"    -- {entry['purpose']}\n    procedure {routine}(" in text, name
