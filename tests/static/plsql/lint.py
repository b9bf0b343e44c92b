"""Find valid PL/SQL that is wrong in a queue or against the house style.

names.py checks names, calls and columns. Every exception from a rule is below, with its reason.
"""

import re
from collections.abc import Callable, Iterator

from tests.static.plsql.source import Source
from tests.static.shapes import inside, split

Finding = tuple[int, str]

COMMITS = {"advance_sequence", "dequeue_wait", "wait_for_result", "drop_days", "maintain_job"}
"""dequeue_wait and wait_for_result refuse a transaction; the others have their own."""

WAITS = {"pop_claimed", "extend_lease"}
"""Sessions that finish or extend the same claim wait for each other."""
WAITS |= {"require_schedule"}
"""Sessions that change the same schedule wait for each other."""

SWALLOWS = {
    *("maintain", "maintain_archive", "maintain_retention", "maintain_job"),
    *("wake_waiters", "wait_for_wakeup"),
}
"""maintain records an error and continues; a message needs no wake-up queue."""
SWALLOWS |= {"run_due"}
"""A schedule's error is recorded or retried, and other schedules run."""

DYNAMIC = {"drop_days", "health_server"}
"""The names of partitions are dynamic."""
DYNAMIC |= {"try_become_poller", "stop_polling", "wake_waiters", "wait_for_wakeup"}
"""These call optional routines, or routines that need a right."""
DYNAMIC |= {"dequeue_wait", "wait_for_result"}
"""These must not keep package rowq in use while they wait."""
DYNAMIC |= {"advance_sequence"}
"""DDL of a sequence."""
DYNAMIC |= {"maintain_job", "grants", "partition_archive", "wakeup_off", "remove"}
"""Scripts that change the schema if it is not changed yet."""


AUTONOMOUS = {"drop_days", "advance_sequence"}
"""DDL commits, and must not commit the caller's transaction."""

OPENS, ROLLS_BACK = "begin_work", "roll_back"
"""The helpers that set a savepoint and roll back to it."""

LISTED = {"32767", "2000", "4000"}
"""The longest texts of PL/SQL and of a collection's index are in bytes."""

_FORBIDDEN = (
    (r"\brownum\b", "rownum counts rows before locked ones are skipped"),
    (r"\bgoto\b", "goto"),
    (r"\bdbms_(?:lock|alert|pipe|random)\b", "needs a right that rowq does not require"),
    (
        r"\bnumtodsinterval\(\w*microseconds / 1000000, '",
        "numtodsinterval is limited to 2147483647 seconds",
    ),
    (r"\b(?:sysdate|current_timestamp|localtimestamp|current_date)\b", "not in UTC"),
    (r"(?<!sys_extract_utc\()\bsystimestamp\b", "convert with sys_extract_utc"),
    (r"(?:=|<>|!=)\s*''", "an empty text is null and equals nothing"),
    (r"\bselect\s+(?:/\*.*?\*/\s*)?(?:\w+\.)?\*", "select names its columns"),
    (r"\binsert into \w+\s+(?:values|select)\b", "insert names its columns"),
    (r"\bif (?:not )?exists\b", "not in Oracle 19c"),
    (r"\bwhen others then\s+null\b", "an error is ignored"),
    (r"\b[a-z_][a-z0-9_]{30,}\b", "a name of more than 30 characters"),
    (r"\bfetch \w+ bulk collect into \w+;", "a bulk fetch has a limit"),
    (r"\bserially_reusable\b", "state of a package"),
)
_FETCHES_AHEAD = "a cursor for loop fetches ahead and locks more than it uses"
_CONVERSIONS = re.compile(r"\b(?:to_char|to_date|to_timestamp|to_number)\(")
_REFUSAL = re.compile(r"raise_application_error\(\s*-20(\d{3}),\s*'(\w+)")


def problems(source: Source) -> Iterator[Finding]:
    """Yield line and text of every finding in a file."""
    for pattern, words in _FORBIDDEN:
        for match in re.finditer(pattern, source.code, re.DOTALL):
            yield source.line_of(match.start()), words
    for rule in _RULES:
        yield from rule(source)


def _locking(source: Source) -> Iterator[Finding]:
    for place, statement in source.statements():
        if re.search(r"\bfor update\b", statement):
            shown = source.text[place : place + len(statement)]
            yield from ((source.line_of(place), words) for words in _locking_faults(source, shown))
    locking = re.findall(r"\bcursor (\w+)[^;]*\bfor update\b", source.code)
    for match in re.finditer(r"\bfor \w+ in (\w+)(?:\(.*?\))? loop\b", source.code):
        if match[1] in locking:
            yield source.line_of(match.start()), _FETCHES_AHEAD


def _locking_faults(source: Source, statement: str) -> Iterator[str]:
    """Yield the faults of a statement that locks rows."""
    if re.search(r"\bfetch (?:first|next)\b", statement):
        yield "fetch first cannot be combined with for update (ORA-02014)"
    if "skip locked" not in statement and source.stem not in WAITS:
        yield "for update waits; add skip locked"
    if statement.endswith(") loop"):
        yield _FETCHES_AHEAD
    if "table(" in statement and not re.search(r"\bcardinality\(a|index_rs_asc\(", statement):
        yield "the server estimates 8168 ids in a list, and may read the whole table for one"
    # A statement that reads rows by their ids takes all of them, in any order.
    if re.search(r"\border by\b", statement) and "table(" not in statement:
        if not re.search(r"index_rs_asc\(\w rowq_\w+_pk\)", statement):
            yield "without its hint the order may come from a sort, which locks all"
        # An index-organized table needs no hint, but is a heap in an autonomous database.
        if "no_batch_table_access_by_rowid(" not in statement:
            yield "batched table access locks in another order"


def _transactions(source: Source) -> Iterator[Finding]:
    for match in re.finditer(r"\bcommit\b|\brollback;", source.code):
        if source.stem not in COMMITS:
            yield source.line_of(match.start()), "the transaction is the caller's"
    if re.search(r"\bfetch \w+ (?:bulk|into)\b", source.code) and re.search(
        r"\bcommit\b", source.code
    ):
        yield 1, "a commit among fetches (ORA-01002)"
    for match in re.finditer(r"pragma autonomous_transaction", source.code):
        if source.stem not in AUTONOMOUS:
            yield source.line_of(match.start()), "an autonomous transaction"


def _savepoints(source: Source) -> Iterator[Finding]:
    for match in re.finditer(rf"\binternal_{ROLLS_BACK}\((\w+)\);", source.code):
        if f"internal_{OPENS}({match[1]});" not in source.code[: match.start()]:
            yield source.line_of(match.start()), "a savepoint that was never set"
    for match in re.finditer(rf"\binternal_{OPENS}\((\w+)\);", source.code):
        if f"internal_{ROLLS_BACK}({match[1]});" not in source.code[match.end() :]:
            yield source.line_of(match.start()), "an error does not roll back to this savepoint"
    for match in re.finditer(r"rollback to savepoint (\w+)", source.code):
        before = source.code[: match.start()].replace("to savepoint", "")
        if source.stem != ROLLS_BACK and f"savepoint {match[1]};" not in before:
            yield source.line_of(match.start()), "a savepoint that was never set"


def _handlers(source: Source) -> Iterator[Finding]:
    for match in re.finditer(
        r"\bwhen others then\b(.*?)\n\s*end(?! if| loop| case)\b", source.code, re.DOTALL
    ):
        if not re.search(r"\braise;", match[1]) and source.stem not in SWALLOWS:
            yield source.line_of(match.start()), "when others without raise"
        if source.stem in SWALLOWS and "when e_cancelled then" not in source.code[: match.start()]:
            yield source.line_of(match.start()), "a cancelled call (ORA-01013) must raise"


def _dynamic(source: Source) -> Iterator[Finding]:
    for match in re.finditer(r"\bexecute immediate\b", source.code):
        if source.stem not in DYNAMIC:
            yield source.line_of(match.start()), "a dynamic statement"


def _conversions(source: Source) -> Iterator[Finding]:
    for match in _CONVERSIONS.finditer(source.code):
        if len(split(inside(source.code, match.end() - 1))) < 2:
            yield source.line_of(match.start()), "a conversion that depends on the session's NLS"


def _answers(source: Source) -> Iterator[Finding]:
    for match in re.finditer(r"\bopen p_rows for\s+select\b([^;]*)", source.code):
        for name in re.findall(r"\b(v_\w+)\b", match[1]):
            if re.search(rf"\b{name}\s+(?:clob|blob)\b", source.code):
                yield source.line_of(match.start()), "a variable's LOB ends with its block"


def _privileges(source: Source) -> Iterator[Finding]:
    for match in re.finditer(r"exception_init\(\w+, -1031\)", source.code):
        if "-41900)" not in source.code:
            yield (source.line_of(match.start()), "23ai has another error for this")


def _functions_in_sql(source: Source) -> Iterator[Finding]:
    for place, statement in source.statements():
        for match in re.finditer(r"\b(?:internal_\w+|(?:utl|dbms)_\w+\.\w+)\b", statement):
            yield source.line_of(place + match.start()), "a function of PL/SQL inside SQL"


def _selects(source: Source) -> Iterator[Finding]:
    for match in re.finditer(r"\bselect\b", source.code):
        depth, place = 0, match.end()
        while place < len(source.code) and depth >= 0 and source.code[place] != ";":
            depth += (source.code[place] == "(") - (source.code[place] == ")")
            place += 1
        if not re.search(r"\bfrom\b", source.code[match.end() : place]):
            yield source.line_of(match.start()), "select without from: not in Oracle 19c"


def _refusals(source: Source) -> Iterator[Finding]:
    for match in _REFUSAL.finditer(source.text):
        if match[2] != f"RQ{match[1]}":
            yield source.line_of(match.start()), "number and text of an error differ"


def _texts(source: Source) -> Iterator[Finding]:
    for match in re.finditer(r"\bvarchar2\((\d+)\)", source.code):
        if match[1] not in LISTED:
            yield source.line_of(match.start()), "use char: lengths are in characters"


def _deletes(source: Source) -> Iterator[Finding]:
    pattern = r"forall [^;]*?\bdelete from rowq_(?:ready|delayed|dead|group_waiting)\b"
    for match in re.finditer(pattern, source.code):
        if "sql%bulk_rowcount(" not in source.code:
            yield source.line_of(match.start()), "check sql%bulk_rowcount after forall delete"
    locked = re.findall(r"\bfrom (rowq_\w+)[^;]*\bfor update skip locked", source.code)
    for match in re.finditer(r"(forall [^;]*?)?\bdelete from (rowq_\w+)[^;]*;", source.code):
        checks = re.match(r"\s*[^;]*\bsql%rowcount\b", source.code[match.end() :])
        if match[2] in locked and not match[1] and not checks:
            yield (source.line_of(match.start()), "check sql%rowcount after this delete")


def _forall(source: Source) -> Iterator[Finding]:
    for match in re.finditer(r"\bforall (\w+) in\b[^;]*;", source.code):
        if f"({match[1]})" not in match.group():
            yield source.line_of(match.start()), "forall without an element of a collection"


def binds(source: Source) -> Iterator[Finding]:
    """Yield each bind in a script: it gets no value. The driver ignores binds in DDL."""
    place = 0
    for unit in re.split(r"^/$", source.code, flags=re.MULTILINE):
        if not re.match(r"\s*(?:create|comment)\b", unit):
            for match in re.finditer(r":\w+", unit):
                yield source.line_of(place + match.start()), f"{match[0]} has no value"
        place += len(unit) + 1


def _ends(source: Source) -> Iterator[Finding]:
    named = re.match(r"(?:procedure|function) (\w+)", source.code)
    if named and not source.text.endswith(f"\nend {named[1]};\n"):
        yield source.text.count("\n"), "a subprogram ends with its name"


def _cursors(source: Source) -> Iterator[Finding]:
    for name in re.findall(r"\bcursor (\w+)", source.code):
        opened = len(re.findall(rf"\bopen {name}\b", source.code))
        closed = len(re.findall(rf"\bclose {name}\b", source.code))
        if opened != closed:
            yield 1, f"cursor {name} is opened {opened} and closed {closed} times"


def _state(source: Source) -> Iterator[Finding]:
    if source.stem == "types":
        for number, line in enumerate(source.code.splitlines(), start=1):
            if re.match(r"\w+", line) and not line.startswith(("type ", "subtype ", "create ")):
                yield number, "a variable of the package keeps state between calls"


_RULES: tuple[Callable[[Source], Iterator[Finding]], ...] = (
    _locking, _transactions, _savepoints, _handlers, _dynamic, _conversions, _functions_in_sql,
    _answers, _privileges, _selects, _refusals, _texts, _deletes, _forall, _ends, _cursors, _state,
)  # fmt: skip
