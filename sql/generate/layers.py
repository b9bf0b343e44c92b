"""docs/layers.dot: the layers of python_client/rowq from pyproject.toml, and their imports."""

import ast
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python_client" / "rowq"
_ABOVE_CLIENT = ("tools.", "contrib", "web", "worker")
_WIDTH = 52
_HEAD = """\
// Generated from pyproject.toml and python_client/rowq by make generate. Do not edit.
digraph layers {
    rankdir=TB; nodesep=0.3; ranksep=0.35; bgcolor="white"; pad=0.2;
    node [fontname="Arial", fontsize=14, shape=box, style="rounded,filled", margin="0.4,0.1"];
    node [fillcolor="#eef3fb", color="#4a6fa5"];
    edge [color="#667788", arrowsize=0.7];
    subgraph cluster_client {
        label="import rowq"; fontname="Arial"; fontsize=14; labeljust=l;
        color="#b58b1c"; style=rounded;
        node [fillcolor="#fdf3d8", color="#b58b1c"];
"""


def layers() -> list[tuple[str, ...]]:
    """Return the modules of each layer without `rowq.`, highest layer first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (lines,) = (one["layers"] for one in contracts if one["type"] == "layers")
    return [tuple(name.strip().removeprefix("rowq.") for name in line.split(":")) for line in lines]


def layers_dot() -> str:
    """Return the text of layers.dot."""
    found = layers()
    inside = [n for n, names in enumerate(found) if not names[0].startswith(_ABOVE_CLIENT)]
    boxes = [f'{n} [label="{_label(names)}"];' for n, names in enumerate(found)]
    lines = [f"        {boxes[n]}" for n in inside]
    lines.append("    }")
    lines += [f"    {box}" for n, box in enumerate(boxes) if n not in inside]
    lines += [f"    {above} -> {below};" for above, below in _shortest(_imports(found))]
    return _HEAD + "\n".join(lines) + "\n}\n"


def _label(names: tuple[str, ...]) -> str:
    return "\\n".join(textwrap.wrap(", ".join(names), _WIDTH))


def _imports(found: list[tuple[str, ...]]) -> set[tuple[int, int]]:
    """Return the pairs of layers with an import, by index."""
    pairs: set[tuple[int, int]] = set()
    for path in PACKAGE.rglob("*.py"):
        above = _layer_of(found, _module(path))
        if above is not None:
            below = {_layer_of(found, name) for name in _imported(path)}
            pairs |= {(above, one) for one in below - {None, above} if one is not None}
    return pairs


def _shortest(pairs: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the transitive reduction of the arrows."""
    reached: dict[int, set[int]] = {}
    shortest = []
    for above in sorted({one for one, _ in pairs}, reverse=True):
        reached[above] = set()
        for below in sorted(below for one, below in pairs if one == above):
            if below not in reached[above]:
                shortest.append((above, below))
            reached[above] |= {below} | reached.get(below, set())
    return sorted(shortest)


def _layer_of(found: list[tuple[str, ...]], module: str) -> int | None:
    for layer, names in enumerate(found):
        if any(f"{module}.".startswith(f"{name}.") for name in names):
            return layer
    return None


def _module(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def _imported(path: Path) -> Iterator[str]:
    """Yield the modules of rowq that a file imports, without `rowq.`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ImportFrom(module="rowq", names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(name), names=names) if name.startswith("rowq."):
                yield from (f"{name.removeprefix('rowq.')}.{alias.name}" for alias in names)
