"""A sample next version in a clone, made like a developer would: a queue setting.

The setting `note` is a column, which the new routine annotate_queue sets; `version` changes. The
edits are the same on every engine if possible.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from rowq.tools.migrate.frozen import migration_files
from tests.helpers.releases import COLUMN

REMARK = "Monitors call it often."
"""The new comment in the routine `version`."""
ROUTINE, PROCEDURE = "annotate_queue", "AnnotateQueue"

_CONTRACT = """
[routine.annotate_queue]
group = "admin"
purpose = "Set a queue's note."
parameters = [{ name = "queue_name" }, { name = "note", default = "null" }]
columns = ["queue_name", "outcome"]
outcomes = ["altered"]
errors = ["RQ701", "RQ711"]
promises = ["P18"]
roles = ["admin"]
repeatable = true
"""
_METHOD = '''
    async def annotate_queue(self, queue_name: str, note: str | None = None) -> QueueOutcome:
        """Set a queue's note."""
        return QueueOutcome(
            *await self._row("annotate_queue", queue_name=queue_name, note=note)
        )
'''


@dataclass(frozen=True)
class Words:
    """The edits on an engine.

    parameters, setting: the text in pause_queue, and in annotate_queue. column: the new line of the
    table, after the line that begins with `last`.
    """

    parameters: tuple[str, str]
    setting: tuple[str, str]
    column: str
    last: str


WORDS = {
    "postgres": Words(
        ("(p_queue_name text)", "(\n    p_queue_name text,\n    p_note       text default null\n)"),
        ("paused_at = coalesce(q.paused_at, v_now)", "note = p_note"),
        "    note                 text,\n",
        "    created_at ",
    ),
    "mysql": Words(
        ("(p_queue_name longtext)", "(p_queue_name longtext, p_note longtext)"),
        ("q.paused_at = coalesce(q.paused_at, utc_timestamp(6))", "q.note = p_note"),
        "    note                 text,\n",
        "    created_at ",
    ),
    "sqlserver": Words(
        (
            "    @queue_name nvarchar(max)\n",
            "    @queue_name nvarchar(max),\n    @note nvarchar(max) = null\n",
        ),
        ("paused_at = coalesce(q.paused_at, sysutcdatetime())", "note = @note"),
        "    note                 nvarchar(100) null,\n",
        "    created_at ",
    ),
    "oracle": Words(
        (
            "    p_queue_name in varchar2,\n    p_rows       out",
            "    p_queue_name in varchar2,\n    p_note       in varchar2 default null,\n"
            "    p_rows       out",
        ),
        ("q.paused_at = coalesce(q.paused_at, sys_extract_utc(systimestamp))", "q.note = p_note"),
        "    note                 varchar2(100 char),\n",
        "    created_at ",
    ),
}


def edit(file: Path, old: str, new: str) -> None:
    """Replace a text that occurs once in a file."""
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file} has {text.count(old)} times: {old}"
    file.write_text(text.replace(old, new), encoding="utf-8", newline="\n")


def change(root: Path) -> None:
    """Change a checkout whose next version has begun, without generating files."""
    contract = root / "sql" / "contract.toml"
    edit(contract, "\n[routine.resume_queue]\n", f"{_CONTRACT}\n[routine.resume_queue]\n")
    meaning = "Note of the queue."
    edit(
        contract,
        "\n[parameters]\n",
        f'\n[parameters]\nnote = {{ type = "text", meaning = "{meaning}" }}\n',
    )
    edit(contract, "\n[table_columns]\n", f'\n[table_columns]\n"queue.note" = "{meaning}"\n')
    queue = root / "python_client" / "rowq" / "async_queue.py"
    edit(queue, "\n    async def resume_queue(", f"{_METHOD}\n    async def resume_queue(")
    for engine, words in WORDS.items():
        change_engine(root, engine, words)


def change_engine(root: Path, engine: str, words: Words) -> None:
    """Change one engine."""
    folder = root / "sql" / engine
    made = folder / "routines" / f"{ROUTINE}.sql"
    made.write_text((folder / "routines" / "pause_queue.sql").read_text(encoding="utf-8"))
    for old, new in (words.parameters, words.setting):
        edit(made, old, new)
    text = made.read_text(encoding="utf-8")
    text = text.replace("pause_queue", ROUTINE).replace("PauseQueue", PROCEDURE)
    text = text.replace("'paused'", "'altered'")
    text = re.sub(r"(?<=-- purpose   ).*", "Set a queue's note.", text)
    made.write_text(text, encoding="utf-8", newline="\n")
    differs = "-- differs   nothing\n"
    edit(folder / "routines" / "version.sql", differs, f"{differs}    -- {REMARK}\n")
    table = folder / "tables.sql"
    (line,) = [
        line
        for line in table.read_text(encoding="utf-8").splitlines(keepends=True)
        if line.startswith(words.last)
    ]
    edit(table, line, f"{line}{words.column}")


def add_statements(root: Path) -> None:
    """Make the newest migration of each engine add the column to an existing table."""
    for engine, (apply, rollback) in COLUMN.items():
        newest = migration_files(root / "migrations" / engine)[-1]
        edit(newest, "import frozen\n", "import frozen, statement\n")
        text = f"statement(\n    {apply!r},\n    {rollback!r},\n)\nfrozen(__file__)\n"
        edit(newest, "frozen(__file__)\n", text)
