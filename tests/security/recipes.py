"""Read the recipes of sql/RIGHTS.md for tests."""

import re

from tests.static.sources import ROOT


def recipe(engine: str) -> list[str]:
    """Return an engine's recipe; its paragraph begins with the engine's name."""
    page = (ROOT / "sql" / "RIGHTS.md").read_text(encoding="utf-8")
    found = re.search(rf"^{engine}[^`]*[^\n]*\n\n```sql\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert found, engine
    # Split at these words at the start of a line: within a statement they are indented.
    return re.split(r"(?<=;)\n(?=create|grant|revoke)", found[1].strip())
