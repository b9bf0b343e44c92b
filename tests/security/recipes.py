"""Reads the recipes of sql/RIGHTS.md, as a test runs them."""

import re

from tests.static.sources import ROOT


def recipe(engine: str) -> list[str]:
    """Return the statements of the recipe for an engine, whose paragraph begins with its name."""
    page = (ROOT / "sql" / "RIGHTS.md").read_text(encoding="utf-8")
    found = re.search(rf"^{engine}[^`]*[^\n]*\n\n```sql\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert found, engine
    # Cut at these words at the start of a line: inside a statement they are indented.
    return re.split(r"(?<=;)\n(?=create|grant|revoke)", found[1].strip())
