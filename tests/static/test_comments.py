"""The contract describes every table and column that there is, and nothing else."""

import pytest

from rowq.migrate import comments
from rowq.oracle.packages import packages
from tests.static.sources import CONTRACT, ENGINES, SQL, sql_units


@pytest.mark.parametrize("engine", ENGINES)
def test_every_table_and_column_has_a_description(engine: str) -> None:
    made = {unit.stem for unit in sql_units(engine, "tables") if "\ncreate table " in unit.text}
    assert comments.tables(SQL / engine).keys() == made
    described = comments.columns(SQL / engine)
    assert {table for table, _ in described} == made
    assert ("ready", "lane") in described
    assert all(described.values())


def test_the_contract_describes_no_table_or_column_that_is_nowhere() -> None:
    tables = {table for engine in ENGINES for table in comments.tables(SQL / engine)}
    assert tables == CONTRACT["tables"].keys()
    places = [place for engine in ENGINES for place in comments.columns(SQL / engine)]
    known = {column for _, column in places} | {".".join(place) for place in places}
    assert set(CONTRACT["table_columns"]) <= known


def test_a_description_has_the_length_and_the_characters_that_every_engine_takes() -> None:
    texts = [
        *(entry["purpose"] for entry in CONTRACT["routine"].values()),
        *CONTRACT["tables"].values(),
        *CONTRACT["table_columns"].values(),
    ]
    for text in texts:
        assert len(text) <= 250
        assert text.isascii()
        assert "\\" not in text


def test_oracle_s_specifications_say_what_each_routine_does() -> None:
    for name, text in packages(SQL / "oracle"):
        for routine, entry in CONTRACT["routine"].items():
            if not name.endswith("_body.sql") and f"    procedure {routine}(" in text:
                assert f"    -- {entry['purpose']}\n    procedure {routine}(" in text, name
