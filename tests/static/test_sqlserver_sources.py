"""Forbidden and required words in the SQL for SQL Server."""

import re
from collections import Counter
from collections.abc import Iterator
from zoneinfo import available_timezones

import pytest

from rowq.tools.migrate import plain_script
from rowq.tools.migrate.release import release_for
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
"""Tables that all kinds of routines use, each in the order of its only index."""
BUILT_IN = {"openjson"}
"""Table-valued functions of the engine."""
LEVEL = "set transaction isolation level read committed;"
FRAMES = [unit for unit in CODE if LEVEL in code(unit)]
"""Units that begin a transaction or run in the caller's."""
BEGINNING = "select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;"
SAVING = {"drop_queue", "maintain_archive", "maintain_retention"}
"""Units that write with xact_abort off, so that a lock timeout keeps the caller's transaction."""
REFUSES = r"Check\w+|Refuse\w*|Require\w+|EnterQueue|LockQueue\w+|LockClaim"
WRITES = (
    "Push|Pop|Promote|Reap|Finish|Archive|Purge|Delete|OpenLanes|Move|Add|ReleaseLinks|Reserve|Record"
    "|Rescan|TakeGroupSlot|JoinGroups|ReleaseGroupSlots|RunDeferred|DeferGroupChecks|Block|Unblock"
    "|ResumeBlocked|ResumeSuccessors|Expire|Propagate|RetryPropagation|Try|EnqueueTick|RunDue|SkipTick"
    "|FailOrRelease|Store|CancelUnleased|EndCancelled"
)
REFUSING = re.compile(rf"\bexec rowq\.Internal({REFUSES})\b")
WRITING = re.compile(rf"\b(?:insert into rowq\.|update|delete)\b|\bexec rowq\.Internal(?:{WRITES})")

each_file = for_each(CODE)
each_table = for_each(TABLES)


def hints(text: str) -> Iterator[set[str]]:
    """Yield the hints of each table that has hints."""
    text = re.sub(r"\bforceseek \(\w+ \([^)]*\)\)", "forceseek", text)
    for words in re.findall(r"\bwith \( ?((?:index \(\w+\), )?[a-z]+(?:, [a-z]+)*) ?\)", text):
        yield set(re.sub(r"index \(\w+\), ", "", words).split(", "))


@pytest.mark.pitfall("sqlserver 2")
@each_file
def test_readpast_has_rowlock_and_readcommittedlock(unit: Unit) -> None:
    for words in hints(code(unit)):
        if "readpast" in words:
            assert {"rowlock", "readcommittedlock"} <= words, words


@pytest.mark.pitfall("sqlserver 21")
@each_file
def test_dirty_reads_are_limited_to_known_tables(unit: Unit) -> None:
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
def test_routine_sets_isolation_level_before_reading(unit: Unit) -> None:
    text = code(unit).replace(BEGINNING, "")
    first = re.search(r"\b(from|into|update|join) rowq\.(?!meta )", text)
    level = text.find("set transaction isolation level read committed;")
    assert not first or 0 <= level < first.start()


def nulls(text: str) -> list[str]:
    """Return an error if null + N'.' depends on the session's settings."""
    both = "set rowcount 0; set concat_null_yields_null on;"
    return [] if both in text else ["concat_null_yields_null is the caller's"]


def recompiled(text: str) -> list[str]:
    """Return the statements that new statistics recompile.

    The server creates single-column statistics. A statement in a condition cannot have an option.
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
    """Return the code after each retry that has no pause."""
    retries = re.findall(r"set @tries_left = iif\([^;]*@tries_left - 1, 0 \);([^;]*;)", text)
    pause = " if @tries_left > 0 exec rowq.InternalPauseBeforeRetry;"
    return [then for then in retries if then != pause]


@for_each(ROUTINES)
def test_routine_sets_concat_null_yields_null(unit: Unit) -> None:
    assert not nulls(code(unit))


@each_file
def test_statements_are_not_recompiled_for_new_statistics(unit: Unit) -> None:
    assert not recompiled(code(unit))


@for_each(FRAMES)
def test_deadlock_victim_pauses_before_retry(unit: Unit) -> None:
    assert not hasty(code(unit))


def test_planted_faults_of_three_rules_are_found() -> None:
    text = code(next(unit for unit in ROUTINES if unit.stem == "retry_later"))
    assert not nulls(text) + recompiled(text) + hasty(text)
    assert nulls(text.replace("set concat_null_yields_null on;", ""))
    assert recompiled(text.replace(", keepfixed plan)", ")", 1))
    assert recompiled(re.sub(r"option \([^)]*\)", "", text))
    assert hasty(text.replace("exec rowq.InternalPauseBeforeRetry;", "print 1;"))


@pytest.mark.pitfall("sqlserver 3")
@each_file
def test_delete_from_head_has_an_order(unit: Unit) -> None:
    text = code(unit)
    assert not re.search(r"\b(delete|update) top\b", text)
    heads = re.findall(r"\bwith head as \((.*?)\) delete from head\b", text)
    assert len(heads) == text.count("delete from head")
    for head in heads:
        assert head.startswith(" select top (@")
        assert " order by " in head


@pytest.mark.pitfall("sqlserver 4")
@each_file
def test_output_clause_goes_into_a_table(unit: Unit) -> None:
    for statement in code(unit).split(";"):
        if re.search(r"\boutput (deleted|inserted)\.", statement):
            assert re.search(r"\boutput .* into (@|rowq\.leased )", statement), statement


@pytest.mark.pitfall("sqlserver 11")
@each_file
def test_only_own_transactions_are_begun_and_ended(unit: Unit) -> None:
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


def completing() -> Unit:
    """Return the helper that completes a claim in the transaction of a dequeue."""
    return next(unit for unit in CODE if unit.stem == "complete_claim")


@pytest.mark.pitfall("sqlserver 11")
@for_each([*FRAMES, completing()])
def test_refusals_precede_xact_abort_and_writes_follow(unit: Unit) -> None:
    """A refusal keeps the caller's transaction usable; an interrupted call writes nothing."""
    text = code(unit)
    if unit.stem in SAVING or "@owns_transaction" not in text:
        return
    off = 0 if unit == completing() else text.index("if @owns_transaction = 0 set xact_abort off;")
    before, _, after = text[off:].partition(" set xact_abort on;")
    assert after
    # maintain_delivery refuses only in its own transaction: the caller's has already locked the
    # queue.
    refusals = set(REFUSING.findall(after))
    assert refusals <= ({"LockQueueShared"} if unit.stem == "maintain_delivery" else set())
    assert not WRITING.search(before)


def test_completion_follows_refusals_and_precedes_the_dequeue() -> None:
    """A refused call completes nothing; freed capacity and messages are leased."""
    text = code(next(unit for unit in CODE if unit.stem == "dequeue"))
    before, _, after = text.partition(
        "if @old_claim_id is not null begin exec rowq.InternalCompleteClaim"
    )
    assert not REFUSING.search(after)
    for helper in ("Admit", "PopReady", "Promote", "RunDeferred"):
        assert f"exec rowq.Internal{helper}" not in before
        assert f"exec rowq.Internal{helper}" in after


def test_lock_timeout_of_a_count_loses_no_completion() -> None:
    """Our own transaction is rolled back, so the call must be repeated or fail."""
    text = code(next(unit for unit in CODE if unit.stem == "dequeue"))
    assert "or @is_full = 1 and @old_claim_id is not null ), @tries_left - 1, 0 );" in text
    swallowed = "if @tries_left = 0 and (@is_full = 0 or @owns_transaction = 1 and @old_claim_id"
    assert f"{swallowed} is not null) throw;" in text
    assert "@capacity = iif(@is_paused = 1 or @is_full = 1, 0, @batch_size);" in text


def test_claim_is_completed_by_the_statements_of_complete() -> None:
    """A procedure cannot read another's rows, so two procedures have these statements."""
    complete = code(next(unit for unit in ROUTINES if unit.stem == "complete"))
    text = code(completing())
    first = complete.index("delete l output")
    deleting = complete[first : complete.index(";", first)]
    last = complete.index("exec rowq.InternalFinish")
    finishing = complete[last : complete.index("if @owns_transaction = 1 commit")]
    first = complete.index("if @results is not null and @message_ids is null begin")
    counting = complete[first : complete.index("end;", first)]
    for statements in (deleting, finishing, counting):
        assert statements.strip() in text


@for_each([*REFUSES.split("|"), *(rf"{word}\w*" for word in WRITES.split("|"))])
def test_refusing_and_writing_procedures_exist(word: str) -> None:
    assert any(re.fullmatch(f"Internal{word}", object_name(unit)) for unit in CODE)


@pytest.mark.pitfall("sqlserver 14")
@each_file
def test_no_delayed_durability(unit: Unit) -> None:
    assert "delayed_durability" not in code(unit)


@pytest.mark.pitfall("sqlserver 13")
@each_file
def test_times_are_datetime2_in_utc(unit: Unit) -> None:
    text = code(unit)
    assert not re.search(r"\b(datetime|smalldatetime|datetimeoffset)\b", text)
    # One routine compares times that the engine returns in the machine's time zone.
    if unit.stem != "health_server":
        assert not re.search(r"\bsysdatetimeoffset\b", text)


@pytest.mark.pitfall("sqlserver 45")
@each_file
def test_application_locks_are_named_rowq_and_released(unit: Unit) -> None:
    text = unit.text
    for name in re.findall(r"@lock \w*.*?N'([^']+)'", text):
        assert name.startswith("rowq."), name
    if "sp_getapplock" not in text:
        return
    # Only waiters may wait for this lock, because any user of the database can take it.
    assert unit.stem == "dequeue_wait"
    release = "if @turn >= 0 exec sys.sp_releaseapplock @Resource = @lock"
    assert code(unit).count(release) == 2
    assert f"begin catch {release}" in code(unit)


@pytest.mark.pitfall("sqlserver 7", "sqlserver 15")
@each_table
def test_table_has_clustered_key_and_is_on_disk(unit: Unit) -> None:
    text = code(unit)
    assert re.search(r"\bconstraint \w+ (primary key|unique) clustered \(", text)
    assert "memory_optimized" not in text


@pytest.mark.pitfall("sqlserver 13")
@each_table
def test_table_times_are_datetime2_6(unit: Unit) -> None:
    for kind in re.findall(r"\bdatetime\w*(?:\(\d\))?", code(unit)):
        assert kind == "datetime2(6)"


@pytest.mark.pitfall("sqlserver 2")
@each_table
def test_hot_table_has_row_locks_and_fixed_statistics(unit: Unit) -> None:
    text = code(unit)
    if unit.stem in HOT:
        assert "allow_page_locks = off" in text
    if unit.stem in BY_KEY:
        assert "statistics_norecompute = on" in text
        assert f"alter table rowq.{unit.stem} set (lock_escalation = disable);" in text


@each_table
def test_hot_table_has_one_index_only(unit: Unit) -> None:
    text = code(unit)
    if unit.stem in BY_KEY:
        assert text.count(" clustered (") == 1
        for word in ("create index", "nonclustered", "unique", "trigger", "references", " check "):
            assert word not in text, word


@pytest.mark.pitfall("sqlserver 20")
@each_table
def test_ignore_dup_key_is_on_clustered_key_only(unit: Unit) -> None:
    # On a second index the option would lock ranges, and neighbors would wait for each other.
    text = code(unit)
    for option in re.finditer(r"ignore_dup_key = on", text):
        assert text.rindex(" clustered (", 0, option.start()) > text.rfind(
            "nonclustered", 0, option.start()
        )


@pytest.mark.pitfall("sqlserver 42")
@each_table
def test_only_queue_has_an_identity_column(unit: Unit) -> None:
    """An insert into another table would change the caller's scope_identity()."""
    assert ("identity" in code(unit)) == (unit.stem == "queue")


def test_preflight_names_all_tables() -> None:
    text = release_for("sqlserver").text("preflight.sql")
    found = re.search(r"o\.name in \(([^)]*)\)", text)
    assert found
    tables = {unit.stem for unit in TABLES if "create table rowq." in unit.text}
    named = set(re.findall(r"N'(\w+)'", found[1]))
    assert named == tables | {"migration", "migration_log"}


def test_iana_names_are_known_and_unique() -> None:
    text = next(unit.text for unit in TABLES if unit.stem == "time_zone")
    lists = re.findall(r"\(N'[^']+', N'([^']+)'\)", text)
    found = Counter(name for names in lists for name in names.split())
    assert set(found.values()) == {1}
    assert len(found) > 400
    assert not found.keys() - available_timezones()


@each_file
def test_table_variable_columns_state_nullability(unit: Unit) -> None:
    """Otherwise the session decides (ansi_null_dflt_on, ansi_null_dflt_off)."""
    text = unit.text
    for columns in re.findall(r"declare @\w+ table \(\n([^;]*?)\n    \);", text):
        for column in columns.splitlines():
            words = column.strip()
            assert words.startswith("primary key") or re.search(r"\bnull\b", words), words


@each_file
def test_objects_are_schema_qualified(unit: Unit) -> None:
    """Otherwise the caller's default schema is searched first."""
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


def test_every_babelfish_rule_changes_a_batch() -> None:
    batches = plain_script("sqlserver").split("-- [end of statement]\n")
    idle = []
    for rule in RULES:
        before = batches
        batches = [rule.pattern.sub(rule.replacement, batch) for batch in before]
        if batches == before:
            idle.append((rule.what, rule.pattern.pattern))
    assert idle == []
