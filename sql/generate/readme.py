"""The generated parts of README.md, sql/PROMISES.md and sql/RIGHTS.md.

Benchmark figures, promises with their tests, roles with their routines, and tested attacks.
"""

import ast
from pathlib import Path

from rowq.contract import load_contract

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
SHOWN = 3
_DRAIN, _ONE_BY_ONE, _SNAPSHOT, _WAITING = "drain_durable", "one_by_one", "snapshot_1", "depth"
ENGINES = {
    "postgres": "PostgreSQL",
    "mysql": "MariaDB and MySQL",
    "sqlserver": "SQL Server",
    "oracle": "Oracle",
}
# Tests of rights outside tests/security.
OF_RIGHTS = ("privileges", "definer")
# Show one test per folder for a promise, from the hardest tests first.
ROOMS = (
    "interleavings",
    "concurrency",
    "chaos",
    "security",
    "contract",
    "engine_only",
    "client",
    "migrations",
)


def cited_in(path: Path) -> set[str]:
    """Return the promises in a file's `promise` markers."""
    return {
        argument.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "promise"
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


def _room(path: Path) -> str:
    return path.relative_to(ROOT / "tests").parts[0]


def _rank(path: Path) -> tuple[int, Path]:
    room = _room(path)
    return ROOMS.index(room) if room in ROOMS else len(ROOMS), path


def _shown(held: list[Path]) -> list[Path]:
    """Return the first files: one of each folder, then a second one of each."""
    rooms = [_room(path) for path in held]
    turns = {path: rooms[:place].count(rooms[place]) for place, path in enumerate(held)}
    return sorted(held, key=lambda path: turns[path])[:SHOWN]


def promises() -> str:
    """Return the list as Markdown."""
    files = sorted((ROOT / "tests").rglob("test_*.py"), key=_rank)
    cited = {path: cited_in(path) for path in files}
    lines = []
    for number, text in load_contract().promises.items():
        held = [path for path, numbers in cited.items() if number in numbers]
        links = ", ".join(
            f"[{path.stem.removeprefix('test_')}](../{path.relative_to(ROOT).as_posix()})"
            for path in _shown(held)
        )
        lines.append(f"- **{number}** {text} ({links})\n")
    return "".join(lines)


FIGURES = (
    ("Messages per second, batches of 50, durable commits", _DRAIN, "messages/s"),
    ("WAL bytes per message, batches of 50", _DRAIN, "WAL bytes / message"),
    ("Messages per second, one by one, 4 sessions, durable", _ONE_BY_ONE, "messages/s"),
    ("Pages per dequeue, snapshot open for 30 s", _SNAPSHOT, "buffers / dequeue, end"),
    ("Pages per dequeue, 1,000,000 messages waiting", _WAITING, "buffers, batch 1, backlog"),
)
"""Figures of benchmarks/RESULTS.md for README.md: title, scenario, column."""


def numbers() -> str:
    """Return the table of selected benchmark figures, and the summary of targets."""
    text = RESULTS.read_text(encoding="utf-8")
    lines = ["|  | rowq | pgmq |\n", "| --- | --- | --- |\n"]
    for title, scenario, column in FIGURES:
        found = {system: _figure(text, scenario, system, column) for system in ("rowq", "pgmq")}
        lines.append(f"| {title} | {found['rowq']} | {found['pgmq']} |\n")
    ratios = _section(text, "Ratios and targets")
    met, missed = ratios.count(" met |"), ratios.count("**not met** |")
    link = "benchmarks/RESULTS.md#ratios-and-targets"
    lines.append(f"\nOf {met + missed} [targets for ratios]({link}) {missed} are not met.\n")
    return "".join(lines)


def _section(text: str, heading: str) -> str:
    return text.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def _figure(text: str, scenario: str, system: str, column: str) -> str:
    """Return a system's first figure in a scenario, with its spread if any."""
    head: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == "scenario":
            head = cells
        elif cells[:2] == [scenario, system]:
            return cells[head.index(column)]
    raise LookupError(f"{scenario}, {system}: {column}")


def rights() -> str:
    """Return the table of roles and their routines."""
    contract = load_contract()
    lines = ["| Role | may call |\n", "| --- | --- |\n"]
    every = [*contract.routines.values(), *contract.own.values()]
    for role in contract.roles:
        routines = [routine for routine in every if role in routine.roles]
        names = ", ".join(f"`{routine.name}`" for routine in routines)
        what = "everything" if len(routines) == len(every) else names
        lines.append(f"| `rowq_{role}` | {what} |\n")
    return "".join(lines)


def _sentence(name: str) -> str:
    words = f"{name.removeprefix('test_')}_".replace("_s_", "'s_").replace("_", " ").strip()
    return f"{words[0].upper()}{words[1:]}"


def attacks() -> str:
    """Return the names of security and privilege tests as sentences."""
    lines = []
    for engine, title in ENGINES.items():
        files = sorted((ROOT / "tests" / "security" / engine).glob("test_*.py"))
        rights_of = ROOT / "tests" / "engine_only" / engine
        files += [path for name in OF_RIGHTS if (path := rights_of / f"test_{name}.py").exists()]
        lines.append(f"\n### {title}\n")
        for path in files:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            what = (ast.get_docstring(tree) or "").partition("\n")[0]
            names = [
                node.name
                for node in tree.body
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
            ]
            link = f"[{what}](../{path.relative_to(ROOT).as_posix()})"
            lines.append(f"\n{link} {'. '.join(map(_sentence, names))}.\n")
    return "".join(lines) + "\n"
