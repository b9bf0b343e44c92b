"""Words that the sources for SQL Server must not have, and a few that they must have."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import available_timezones

import pytest

from rowq.tools.migrate import plain_script
from tests.engines.sqlserver.babelfish_rules import RULES
from tests.static.each import for_each
from tests.static.sources import Unit, code, object_name, sql_units

CODE = sql_units("sqlserver", "internal", "routines")
ROUTINES = sql_units("sqlserver", "routines")
TABLES = [unit for unit in sql_units("sqlserver", "tables") if "create table" in unit.text]
HOT = {
    "ready", "delayed", "claim", "leased", "finished", "dedup", "lane", "queue_lock", "group_slot",
    "group_waiting", "deferred", "limit_lock", "started", "blocked", "successor", "expiry",
}  # fmt: skip
BY_KEY = HOT | {"message", "dead"}
"""Tables at which routines of all kinds meet: one index each, in whose order all of them go."""
BUILT_IN = {"openjson"}
"""Functions of the engine that are asked like tables."""
LEVEL = "set transaction isolation level read committed;"
FRAMES = [unit for unit in CODE if LEVEL in code(unit)]
"""Files that have a transaction of their own, or are in the caller's."""
BEGINNING = "select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;"
SAVING = {"drop_queue", "maintain_archive", "maintain_retention"}
"""Files that write with xact_abort off, as a wait that is too long must not end a caller's work."""
REFUSES = r"Check\w+|Refuse\w*|Require\w+|EnterQueue|LockQueue\w+|LockClaim"
WRITES = (
    "Push|Pop|Promote|Reap|Finish|Archive|Purge|Delete|OpenLanes|Move|Add|ReleaseLinks|Reserve|Record"
    "|Rescan|TakeGroupSlot|JoinGroups|ReleaseGroupSlots|RunDeferred|DeferGroupChecks|Block|Unblock"
    "|ResumeBlocked|ResumeSuccessors|Expire|Propagate|RetryPropagation|Try|EnqueueTick|RunDue|SkipTick"
    "|FailOrRelease|Store|CancelUnleased|EndCancelled"
)
REFUSING = re.compile(rf"\bexec rowq\.Internal({REFUSES})\b")
WRITING = re.compile(rf"\b(?:insert into rowq\.|update|delete)\b|\bexec rowq\.Internal(?:{WRITES})")
MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations" / "sqlserver"

each_file = for_each(CODE)
each_table = for_each(TABLES)


def hints(text: str) -> Iterator[set[str]]:
    """Yield the hints of each table that has some."""
    text = re.sub(r"\bforceseek \(\w+ \([^)]*\)\)", "forceseek", text)
    for words in re.findall(r"\bwith \( ?((?:index \(\w+\), )?[a-z]+(?:, [a-z]+)*) ?\)", text):
        yield set(re.sub(r"index \(\w+\), ", "", words).split(", "))


@pytest.mark.pitfall("sqlserver 2")
@each_file
def test_rows_are_passed_over_one_by_one_and_with_locks_even_where_there_are_row_versions(
    unit: Unit,
) -> None:
    for words in hints(code(unit)):
        if "readpast" in words:
            assert {"rowlock", "readcommittedlock"} <= words, words


@pytest.mark.pitfall("sqlserver 21")
@each_file
def test_dirty_reads_are_for_hints_and_for_what_is_checked_again(unit: Unit) -> None:
    text = code(unit)
    read = re.findall(r"\browq\.(\w+) \w+ with \(readuncommitted", text)
    allowed = {
        "maintain_archive": {"lane", "finished"},
        "open_days": {"lane", "finished"},
        "try_take_group_slot": {"group_slot"},
        "unknown_of": {"message"},
    }
    assert set(read) <= allowed.get(unit.stem, {"lane"})


@pytest.mark.pitfall("sqlserver 1")
@for_each([*ROUTINES, *FRAMES])
def test_a_routine_that_reads_a_table_sets_its_isolation_level_first(unit: Unit) -> None:
    text = code(unit).replace(BEGINNING, "")
    first = re.search(r"\b(from|into|update|join) rowq\.(?!meta )", text)
    level = text.find("set transaction isolation level read committed;")
    assert not first or 0 <= level < first.start()


def nulls(text: str) -> list[str]:
    """Return what lets null + N'.' be a key, and a text of null []: a setting of the session."""
    both = "set rowcount 0; set concat_null_yields_null on;"
    return [] if both in text else ["concat_null_yields_null is the caller's"]


def recompiled(text: str) -> list[str]:
    """Return the statements that are compiled again once the server has fresh statistics.

    It makes those of single columns by itself. A statement in a condition cannot have an option.
    """
    found = []
    for statement in text.split(";"):
        options = re.findall(r"\boption \(((?:[^()]|\([^()]*\))*)\)", statement)
        found += [each for each in options if not re.search(r"keepfixed plan|recompile", each)]
        is_stored = re.search(r"\b(from|join|into) rowq\.", statement)
        is_joined = re.search(r"\b(join (rowq\.|@)|apply \()", statement)
        is_condition = re.search(r"\bif (not )?exists \(", statement)
        if is_stored and is_joined and not is_condition and not options:
            found.append(statement)
    return found


def hasty(text: str) -> list[str]:
    """Return what follows where a transaction begins again without a pause."""
    retries = re.findall(r"set @tries_left = iif\([^;]*@tries_left - 1, 0 \);([^;]*;)", text)
    pause = " if @tries_left > 0 exec rowq.InternalPauseBeforeRetry;"
    return [then for then in retries if then != pause]


@for_each(ROUTINES)
def test_a_routine_makes_null_of_what_is_added_to_null(unit: Unit) -> None:
    assert not nulls(code(unit))


@each_file
def test_no_statement_is_compiled_again_for_fresh_statistics(unit: Unit) -> None:
    assert not recompiled(code(unit))


@for_each(FRAMES)
def test_a_victim_of_a_deadlock_pauses_before_it_begins_again(unit: Unit) -> None:
    assert not hasty(code(unit))


def test_planted_faults_of_these_rules_are_found() -> None:
    text = code(next(unit for unit in ROUTINES if unit.stem == "retry_later"))
    assert not nulls(text) + recompiled(text) + hasty(text)
    assert nulls(text.replace("set concat_null_yields_null on;", ""))
    assert recompiled(text.replace(", keepfixed plan)", ")", 1))
    assert recompiled(re.sub(r"option \([^)]*\)", "", text))
    assert hasty(text.replace("exec rowq.InternalPauseBeforeRetry;", "print 1;"))


@pytest.mark.pitfall("sqlserver 3")
@each_file
def test_what_is_taken_from_the_head_of_a_table_is_taken_in_order(unit: Unit) -> None:
    text = code(unit)
    assert not re.search(r"\b(delete|update) top\b", text)
    heads = re.findall(r"\bwith head as \((.*?)\) delete from head\b", text)
    assert len(heads) == text.count("delete from head")
    for head in heads:
        assert head.startswith(" select top (@")
        assert " order by " in head


@pytest.mark.pitfall("sqlserver 4")
@each_file
def test_what_is_changed_is_put_into_a_table_and_not_sent_to_the_caller(unit: Unit) -> None:
    for statement in code(unit).split(";"):
        if re.search(r"\boutput (deleted|inserted)\.", statement):
            assert re.search(r"\boutput .* into (@|rowq\.leased )", statement), statement


@pytest.mark.pitfall("sqlserver 11")
@each_file
def test_only_a_transaction_of_its_own_is_opened_committed_or_rolled_back(unit: Unit) -> None:
    text = code(unit)
    for word in ("begin", "commit"):
        count = len(re.findall(rf"\b{word} tran", text))
        assert count == text.count(f"if @owns_transaction = 1 {word} transaction;"), word
    count = len(re.findall(r"\brollback tran", text))
    own = text.count("if @owns_transaction = 1 and @@trancount > 0 rollback transaction;")
    back = text.count("if @is_saved = 1 and xact_state() = 1 rollback transaction rowq_call;")
    assert count == own + back
    assert back == (own if unit.stem in SAVING else 0)
    assert text.count("save transaction rowq_call; set @is_saved = 1;") == back
    if own:
        assert "if @owns_transaction = 0 set xact_abort off;" in text


@pytest.mark.pitfall("sqlserver 11")
@for_each(FRAMES)
def test_a_call_refuses_before_xact_abort_and_writes_after_it(unit: Unit) -> None:
    """A refusal leaves the caller's transaction usable; a broken-off call leaves no half."""
    text = code(unit)
    if unit.stem in SAVING or "@owns_transaction" not in text:
        return
    off = text.index("if @owns_transaction = 0 set xact_abort off;")
    before, _, after = text[off:].partition(" set xact_abort on;")
    assert after
    # A delete of a claim refuses only in a transaction of the call's own: a caller's has locked the
    # queue already.
    refusals = set(REFUSING.findall(after))
    assert refusals <= ({"LockQueueShared"} if unit.stem == "maintain_delivery" else set())
    assert not WRITING.search(before)


@for_each([*REFUSES.split("|"), *(rf"{word}\w*" for word in WRITES.split("|"))])
def test_a_procedure_that_refuses_or_writes_exists(word: str) -> None:
    assert any(re.fullmatch(f"Internal{word}", object_name(unit)) for unit in CODE)


@pytest.mark.pitfall("sqlserver 14")
@each_file
def test_no_commit_may_be_lost_in_a_crash(unit: Unit) -> None:
    assert "delayed_durability" not in code(unit)


@pytest.mark.pitfall("sqlserver 13")
@each_file
def test_moments_are_utc_and_of_the_clock(unit: Unit) -> None:
    text = code(unit)
    assert not re.search(r"\b(datetime|smalldatetime|datetimeoffset)\b", text)
    # One routine compares times that the engine itself says in the time zone of the machine.
    if unit.stem != "health_server":
        assert not re.search(r"\bsysdatetimeoffset\b", text)


@pytest.mark.pitfall("sqlserver 45")
@each_file
def test_locks_by_name_bear_the_name_of_the_schema_and_are_given_back(unit: Unit) -> None:
    text = unit.text
    for name in re.findall(r"@lock \w*.*?N'([^']+)'", text):
        assert name.startswith("rowq."), name
    if "sp_getapplock" not in text:
        return
    # Only waiting sessions may wait for this lock, because everybody in the database can hold it.
    assert unit.stem == "dequeue_wait"
    release = "if @turn >= 0 exec sys.sp_releaseapplock @Resource = @lock"
    assert code(unit).count(release) == 2
    assert f"begin catch {release}" in code(unit)


@pytest.mark.pitfall("sqlserver 7", "sqlserver 15")
@each_table
def test_a_table_has_a_clustered_key_and_lies_on_disk(unit: Unit) -> None:
    text = code(unit)
    assert re.search(r"\bconstraint \w+ (primary key|unique) clustered \(", text)
    assert "memory_optimized" not in text


@pytest.mark.pitfall("sqlserver 13")
@each_table
def test_moments_in_a_table_are_microseconds_without_a_time_zone(unit: Unit) -> None:
    for moment in re.findall(r"\bdatetime\w*(?:\(\d\))?", code(unit)):
        assert moment == "datetime2(6)"


@pytest.mark.pitfall("sqlserver 2")
@each_table
def test_what_is_hot_is_locked_row_by_row_and_not_recompiled_for(unit: Unit) -> None:
    text = code(unit)
    if unit.stem in HOT:
        assert "allow_page_locks = off" in text
    if unit.stem in BY_KEY:
        assert "statistics_norecompute = on" in text
        assert f"alter table rowq.{unit.stem} set (lock_escalation = disable);" in text


@each_table
def test_what_is_hot_has_one_index_and_nothing_else_that_is_kept_in_step(unit: Unit) -> None:
    text = code(unit)
    if unit.stem in BY_KEY:
        assert text.count(" clustered (") == 1
        for word in ("create index", "nonclustered", "unique", "trigger", "references", " check "):
            assert word not in text, word


@pytest.mark.pitfall("sqlserver 20")
@each_table
def test_a_duplicate_is_only_ignored_by_a_clustered_key(unit: Unit) -> None:
    # The option must not stand on a second index: there the engine locks ranges for it, and
    # neighbours wait for each other.
    text = code(unit)
    for option in re.finditer(r"ignore_dup_key = on", text):
        assert text.rindex(" clustered (", 0, option.start()) > text.rfind(
            "nonclustered", 0, option.start()
        )


@pytest.mark.pitfall("sqlserver 42")
@each_table
def test_no_call_that_writes_messages_changes_its_caller_s_identity(unit: Unit) -> None:
    """Only create_queue, which nobody calls in the middle of something else, may do so."""
    assert ("identity" in code(unit)) == (unit.stem == "queue")


def test_preflight_knows_the_names_of_all_tables() -> None:
    text = (MIGRATIONS / "preflight.sql").read_text(encoding="utf-8")
    found = re.search(r"o\.name in \(([^)]*)\)", text)
    assert found
    tables = {unit.stem for unit in TABLES if "create table rowq." in unit.text}
    named = set(re.findall(r"N'(\w+)'", found[1]))
    assert named == tables | {"migration", "migration_log"}


def test_an_iana_name_is_there_once_and_is_one() -> None:
    text = next(unit.text for unit in TABLES if unit.stem == "time_zone")
    lists = re.findall(r"\(N'[^']+', N'([^']+)'\)", text)
    found = Counter(name for names in lists for name in names.split())
    assert set(found.values()) == {1}
    assert len(found) > 400
    assert not found.keys() - available_timezones()


@each_file
def test_columns_of_a_table_variable_say_whether_they_may_be_null(unit: Unit) -> None:
    """A session's settings (ansi_null_dflt_on, ansi_null_dflt_off) would decide it otherwise."""
    text = unit.text
    for columns in re.findall(r"declare @\w+ table \(\n([^;]*?)\n    \);", text):
        for column in columns.splitlines():
            words = column.strip()
            assert words.startswith("primary key") or re.search(r"\bnull\b", words), words


@each_file
def test_objects_are_named_with_their_schema(unit: Unit) -> None:
    """Otherwise the caller's own schema is asked first."""
    after = re.findall(
        r"(?<!@)\b(?:from|join|into|update|exec(?: @\w+ =)?) ([\w@][\w@.]*)", code(unit)
    )
    aliases = set(re.findall(r"\b(?:rowq|sys)\.\w+ (\w+)\b", code(unit))) | {"head"}
    aliases |= set(re.findall(r"(?:from|join) @\w+ (\w+)\b", code(unit)))
    # A common table expression hides any object of its name.
    aliases |= set(re.findall(r"\bwith (\w+) \([\w, ]+\) as \(", code(unit)))
    for name in after:
        is_known = name.startswith(("rowq.", "sys.", "@")) or name in aliases | BUILT_IN
        assert is_known, name


def test_each_rule_for_babelfish_changes_a_batch() -> None:
    batches = plain_script("sqlserver").split("-- [end of statement]\n")
    idle = []
    for rule in RULES:
        before = batches
        batches = [rule.pattern.sub(rule.replacement, batch) for batch in before]
        if batches == before:
            idle.append((rule.what, rule.pattern.pattern))
    assert idle == []
