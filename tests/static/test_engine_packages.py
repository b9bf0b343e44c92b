"""Each engine of the contract has its package in tests/engines, with the same pieces as the others.

What a piece must be able to do is written in tests/engines/base.py and tests/engines/dialect.py,
and mypy holds it: every server and provider goes through a protocol there, every dialect is one.
"""

from importlib import import_module

from tests.engines.provide import PROVIDERS
from tests.helpers.dialects import DIALECTS
from tests.static.each import for_each
from tests.static.sources import ENGINES, ROOT

FOLDER = ROOT / "tests" / "engines"
PIECES = ("server", "providers", "dialect", "catalog", "tables")


def test_every_engine_has_a_package_and_every_package_is_an_engine() -> None:
    there = {path.name for path in FOLDER.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert there == set(ENGINES)


@for_each(ENGINES)
def test_every_package_has_every_piece_and_every_engine_tests_of_its_own(engine: str) -> None:
    assert [piece for piece in PIECES if not (FOLDER / engine / f"{piece}.py").is_file()] == []
    for room in ("engine_only", "security"):
        assert list((ROOT / "tests" / room / engine).glob("test_*.py"))


@for_each(ENGINES)
def test_the_tests_use_the_servers_and_the_dialect_of_every_package(engine: str) -> None:
    providers = import_module(f"tests.engines.{engine}.providers")
    assert {provider.engine for provider in providers.PROVIDERS} == {engine}
    assert set(providers.PROVIDERS) <= set(PROVIDERS)
    assert DIALECTS[engine] is import_module(f"tests.engines.{engine}.dialect").DIALECT
