"""The generator writes signatures and header lines into the files of routines."""

import re

import pytest

from sql.generate import signatures
from tests.static.sources import ENGINES, SQL


def text_of(engine: str, name: str) -> str:
    return (SQL / engine / "routines" / f"{name}.sql").read_text(encoding="utf-8")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["enqueue", "publish"])
def test_missing_parameter_is_added_to_the_signature(engine: str, name: str) -> None:
    whole = text_of(engine, name)
    without = re.sub(r",\n +[p@]_?expire_seconds +[^,)]*?(?=\n\)|\nas\n|,\n)", "", whole, count=1)
    assert without != whole
    assert signatures.signed(engine, name, without) == whole


@pytest.mark.parametrize("engine", ENGINES)
def test_header_gets_the_contracts_words(engine: str) -> None:
    whole = text_of(engine, "complete")
    old = re.sub(r"^(-- (?:purpose|promise|errors) +).*$", r"\1other", whole, flags=re.MULTILINE)
    assert old.count(" other\n") == 3
    assert signatures.signed(engine, "complete", old) == whole


def test_file_without_signature_is_refused() -> None:
    with pytest.raises(ValueError, match="reap on postgres has 0 signatures"):
        signatures.signed("postgres", "reap", "select 1;\n")
