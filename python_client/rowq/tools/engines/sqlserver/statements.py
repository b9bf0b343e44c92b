"""Statements that migrations on SQL Server send, and how a script is cut into batches."""

import re
from collections.abc import Iterator

from rowq.tools.migrate.bookkeeping import Bookkeeping

# This keeps enqueue out until the transaction ends, so that what was counted stays true.
HOLD_MESSAGES = """
    declare @held bigint;
    select @held = max(m.message_id)
    from rowq.message m with (tablockx, holdlock);
"""

BOOKKEEPING = Bookkeeping(
    migration="rowq.migration",
    log="rowq.migration_log",
    mark="?",
    user="original_login()",
    now="sysutcdatetime()",
    new_id="lower(convert(nvarchar(36), newid()))",
    version="""
update m
set value = v.value,
    changed_at = sysutcdatetime()
from rowq.meta m
join (
    values (N'schema_version', N'{number}'), (N'rowq_version', N'{version}')
) v (name, value) on v.name collate Latin1_General_100_BIN2 = m.name
where m.value <> v.value collate Latin1_General_100_BIN2;

insert into rowq.meta (name, value, changed_at)
select v.name, v.value, sysutcdatetime()
from (
    values (N'schema_version', N'{number}'), (N'rowq_version', N'{version}')
) v (name, value)
where not exists (select 1 from rowq.meta m where m.name = v.name collate Latin1_General_100_BIN2);
""",
)

# The groups are the word go, what can hide it from sqlcmd, and everything else but blanks.
_TOKEN = re.compile(
    r"""
    (?P<go>^[ \t]*go\b[^\n]*$)
    | (?P<comment>--[^\n]*)
    | (?P<block>/\*)
    | (?P<code>'[^']*' | "[^"]*" | \[(?:[^\]]|\]\])*\] | \S)
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_BLOCK = re.compile(r"/\*|\*/")
_GO_ALONE = re.compile(r"\s*go\s*(?:--.*)?", re.IGNORECASE)


def batches(text: str) -> Iterator[str]:
    """Yield the batches of a script of ours, as sqlcmd would send them.

    A batch ends with a line that says `go`, unless that stands in a literal, a quoted name or a
    comment. What holds no code is left out.

    Raises ValueError for a number or anything else after `go`: nothing of ours is repeated.
    """
    start = position = 0
    has_code = False
    while token := _TOKEN.search(text, position):
        position = token.end()
        if token.lastgroup == "block":
            position = _end_of_comment(text, position)
        elif token.lastgroup == "go":
            if not _GO_ALONE.fullmatch(token.group()):
                raise ValueError(f"a batch ends with more than go: {token.group().strip()}")
            if has_code:
                yield text[start : token.start()].strip()
            start, has_code = position, False
        elif token.lastgroup == "code":
            has_code = True
    if has_code:
        yield text[start:].strip()


def _end_of_comment(text: str, position: int) -> int:
    """Return where the comment ends that has begun before `position`; comments nest in T-SQL."""
    depth = 1
    while depth:
        mark = _BLOCK.search(text, position)
        if mark is None:
            raise ValueError("a comment has no end")
        depth += 1 if mark.group() == "/*" else -1
        position = mark.end()
    return position
