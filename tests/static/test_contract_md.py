"""The generated description of the contract is up to date."""

from generate_contract import TARGET, contract_md
from tests.static.sources import CONTRACT


def test_contract_md_is_what_make_generate_writes() -> None:
    assert TARGET.read_text(encoding="utf-8") == contract_md(CONTRACT), "run: make generate"
