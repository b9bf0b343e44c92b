"""Statements that a routine shares with another one by copy, because a call would cost too much.

A source marks them, and the copy is a generated part of the same name:

    -- lease: copied to complete_and_dequeue by make generate
    -- end of lease
"""

import re
import textwrap
from functools import partial
from pathlib import Path

from sql.generate.markers import Parts, renewed

_COPIES = {
    ("mysql", "complete_and_dequeue"): {
        "cursor": "dequeue_fast",
        "handlers": "complete",
        "check": "dequeue_fast",
        "completion": "complete",
        "lease": "dequeue_fast",
    },
    ("postgres", "complete_and_dequeue"): {
        "check": "dequeue_fast",
        "deletion": "complete",
        "lease": "dequeue_fast",
    },
}
"""The parts of a routine, and the routines they are copied from."""
_SELECT = re.compile(r"^( *)select (?=v_claim_id,)", re.MULTILINE)
_WITH_OUTCOME = r"\1select 'leased',\n\1       "
"""The rows of complete_and_dequeue begin with the outcome."""


def copied(path: Path, text: str) -> str:
    """Return a routine's text with current copies."""
    sources = _COPIES.get((path.parents[1].name, path.stem), {})
    parts: Parts = {
        name: partial(_part, path.with_stem(source), name, path.stem)
        for name, source in sources.items()
    }
    return renewed(text, parts, path.name)


def _part(source: Path, name: str, target: str) -> str:
    marked = re.compile(
        rf"^ *-- {name}: copied to {target} by make generate\n(.*?)^ *-- end of {name}\n",
        re.MULTILINE | re.DOTALL,
    )
    found = marked.findall(source.read_text(encoding="utf-8"))
    if len(found) != 1:
        raise ValueError(f"{source.name} has {len(found)} marked parts with the name {name}")
    return _SELECT.sub(_WITH_OUTCOME, textwrap.dedent(found[0]))
