"""Every engine can be looked at in all the ways in which status looks."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from rowq.engines import engines
from rowq.migrate.modules import module_for


def asked() -> set[str]:
    """Return the methods that status calls on what looks at a database."""
    module = importlib.import_module("rowq.migrate.status")
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    return {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "look"
    }


@pytest.mark.parametrize("engine", [engine.name for engine in engines()])
def test_what_status_asks_can_be_answered(engine: str) -> None:
    look = module_for(engine, "look").Look
    assert asked()
    assert [name for name in asked() if not hasattr(look, name)] == []
