"""Static checks of Oracle's PL/SQL: grammar, lint, names and packages."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest

from rowq.tools.engines.oracle.packages import packages
from rowq.tools.migrate.release import release_for
from tests.static.each import for_each
from tests.static.plsql import gate, lint, names
from tests.static.plsql.gate import Script
from tests.static.plsql.source import Source, source
from tests.static.shapes import inside
from tests.static.sources import migration_scripts

OPTIONAL = ("wakeup", "wakeup_off", "maintain_job", "partition_archive")
"""Optional scripts for the owner of rowq."""
BY_TEXT = re.compile(
    r"q'\[(.*?)\]'|execute immediate\s+((?:'[^']*'|\|\||\s)+?)\s*(?:;|using\b)", re.DOTALL
)
"""Dynamic statements."""
NOT_IN_GRAMMAR = {"partition_archive"}
"""The grammar lacks the 12.2 clause that makes a table partitioned."""
SESSIONS_IN_A_BLOCK = {"ready": 64} | dict.fromkeys(
    (
        *("blocked", "claim", "dead", "dedup", "delayed", "expiry", "finished", "group_waiting"),
        *("history", "leased", "message", "group_slot", "deferred", "result", "started"),
        "successor",
    ),
    32,
)
"""Transaction entries per block of a table or index."""
SPECIFICATIONS = ("rowq", "rowq_wait", "rowq_produce", "rowq_consume", "rowq_look")

SYNTAX = (
    ("routines/complete.sql", "begin\n", "begin begin\n"),
    ("routines/complete.sql", "open p_rows for", "open p_rows"),
    ("internal/pop_ready", "bulk collect into", "bulk collect in"),
    ("internal/pop_ready", "for update skip locked", "for update skip lock"),
    ("internal/store", "forall i in indices of v_ready", "forall i in indices v_ready"),
    ("internal/reap", "exit when expired%notfound;", "exit when expired%notfound"),
    ("tables/ready", "initrans 64 pctfree 20", "initrans 64 pctfree"),
    ("tables/leased", "organization index", "organisation index"),
    ("wakeup.sql", "end wake;", "end wake"),
    ("maintain_job.sql", "c_seconds constant", "c_seconds := constant"),
)
"""Syntax errors: file, right text, wrong text."""

FORMS = (
    (
        "internal/pop_ready",
        "          and r.seq >= p_floor\n        order by",
        "          and r.seq >= p_floor\n          and rownum <= 10\n        order by",
    ),
    ("internal/pop_ready", "for update skip locked", "fetch first 10 rows only for update"),
    ("internal/pop_ready", " skip locked", ""),
    ("internal/pop_ready", "index_rs_asc(r rowq_ready_pk) no_batch", "no_batch"),
    ("internal/pop_ready", " no_batch_table_access_by_rowid(r)", ""),
    ("internal/purge_waiting", "index_rs_asc(d rowq_dead_pk) ", ""),
    ("internal/pop_ready", " into v_locked limit v_left;", " into v_locked;"),
    ("internal/pop_ready", "close lane_rows;", "null;"),
    ("internal/delete_ready", "sql%bulk_rowcount(i) = 1", "true"),
    ("internal/pop_group_waiting", "continue when sql%rowcount = 0;", "null;"),
    ("internal/run_deferred", "if sql%rowcount = 0 then", "if false then"),
    ("internal/reap", "while p_reaped + p_died + v_ended < p_limit loop", "for e in expired loop"),
    ("internal/store", "exception\n", "    commit;\nexception\n"),
    ("internal/delete_messages", "is\n", "is\n    pragma autonomous_transaction;\n"),
    ("internal/refuse_queue", "'RQ701 ", "'RQ702 "),
    ("internal/refuse_queue", "end internal_refuse_queue", "end refuse_queue"),
    ("internal/record_value", "changed_at = sys_extract_utc(systimestamp)", "changed_at = sysdate"),
    ("internal/iso_text", "to_char(p_time, 'yyyy", "to_char(p_time) || ('yyyy"),
    ("internal/push_dead", "insert into rowq_dead (", "insert into rowq_dead values ("),
    ("internal/types.sql", "type t_numbers", "v_calls number := 0;\ntype t_numbers"),
    ("internal/require_queue", "q.queue_key = v_key", "q.queue_name = utl_raw.concat(v_key)"),
    ("internal/check_claim", "p_claim_id is null", "p_claim_id = ''"),
    ("routines/complete.sql", "        raise;\n", "        null;\n"),
    ("routines/complete.sql", "    internal_begin_work(v_has_savepoint);\n", ""),
    ("routines/complete_and_dequeue.sql", "        internal_roll_back(v_has_savepoint);\n", ""),
    ("internal/maintain_archive", "    savepoint rowq_archive_part;\n", ""),
    ("routines/pause_queue.sql", "\n        from dual;", ";"),
    ("routines/enqueue.sql", "v_error         varchar2(32767)", "v_error varchar2(100)"),
    ("internal/lock_dead", "v_limit := 10000;", "execute immediate 'x';"),
    ("routines/maintain.sql", "            when e_cancelled then\n                raise;\n", ""),
    ("internal/random_fraction", "dbms_utility.get_hash_value", "dbms_random.value"),
    (
        "internal/from_microseconds",
        "mod(p_microseconds, 86400000000) / 1000000",
        "p_microseconds / 1000000",
    ),
    ("internal/pop_waiting", " unnest cardinality(a 10) */ a", " */ a"),
    (
        "routines/dequeue_wait.sql",
        "    open p_rows for c_messages",
        "    open p_rows for select v_text from dual;\n    v_text clob := 'x",
    ),
    ("internal/health_server", ", -41900", ", -41901"),
    ("wakeup.sql", "when e_timeout then", "when others then"),
    ("wakeup.sql", "to_char(p_queue_id, 'fm9999999999')", "to_char(p_queue_id)"),
    ("maintain_job.sql", "exit when sys_extract_utc(systimestamp)", "exit when sysdate"),
)
"""Valid syntax that the lint forbids."""

NAMES = (
    ("internal/pop_claimed", "p_messages(p_messages.count + 1)", "p_taken(p_messages.count + 1)"),
    (
        "internal/pop_claimed",
        "internal_claimed_messages(p_queue_id, p_claim_id)",
        "internal_claimed_messages(p_queue_id)",
    ),
    (
        "internal/pop_claimed",
        "internal_refuse_claim(p_claim_id)",
        "internal_refuse_claims(p_claim_id)",
    ),
    ("internal/pop_claimed", "p_messages(i).seq", "p_messages(i).place"),
    (
        "internal/pop_claimed",
        "    v_wanted t_positions;",
        "    v_wanted t_positions;\n    v_other number;",
    ),
    ("internal/split_by_attempts", "p_queue.max_attempts", "p_queue.max_tries"),
    ("internal/push_dead", "lane, attempt, died_at)", "lane, attempt, dead_at)"),
    ("internal/push_dead", "p_messages(i).attempt, v_now", "p_messages(i).attempt"),
    ("internal/claimed_messages", "l.attempt, l.place,", "l.attempt, l.seq,"),
    ("internal/claimed_messages", "from rowq_leased l", "from rowq_lease l"),
    ("internal/split_by_attempts", "v_own    t_positions", "v_own    t_position"),
    ("routines/release.sql", "internal_as_front(v_rest, 1);", "internal_as_front(v_rest);"),
    ("routines/promote.sql", "v_promoted := internal_promote(", "internal_promote("),
    ("internal/wait_for_wakeup", "internal_record_waiter(p_queue_id, ", "internal_record_waiter("),
    ("internal/record_waiter", "set q.waiting_until", "set q.listens_until"),
)
"""Unknown names, and calls that do not fit."""

NUMBERS = (
    (
        "internal/peek_ready",
        "is_without_slot,\n               null as is_cancelled",
        "is_without_slot",
    ),
    ("internal/first_lane", "fetch ready_rows into p_lane, p_seq", "fetch ready_rows into p_lane"),
    ("internal/pop_ready", "fetch lane_head into v_probe", "fetch lane_heads into v_probe"),
    ("internal/try_unblock", "into p_lane, v_predecessor_id,", "into p_lane,"),
    ("internal/pop_claimed", "returning c.worker_name, c.leased_at", "returning c.worker_name"),
    (
        "internal/await_predecessor",
        "select p_queue_id, p_predecessor_id, p_message_id\n        from dual",
        "select p_queue_id, p_message_id\n        from dual",
    ),
    ("internal/record_value", "values (n.name, p_value, sys", "values (n.name, sys"),
    ("internal/refuse_not_empty", "select a.message_id", "select a.queue_id, a.message_id"),
    ("routines/complete_and_dequeue.sql", "s.attempt, s.place", "s.attempt"),
    ("internal/add_queue_rows", "values (p_queue_id, v_buckets(i))", "values (p_queue_id, 1)"),
    (
        "routines/version.sql",
        "max(e.engine) as engine",
        "(select max(p.product) from product_component_version p) as engine",
    ),
    (
        "internal/can_send",
        "select max(d.message_id) into",
        "select max(d.message_id) + d.queue_id into",
    ),
)
"""Different numbers of columns and targets or values, and mixed rows and groups."""

KINDS = (
    ("internal/dequeue", "v_lanes, v_batch_size, v_messages", "v_batch_size, v_lanes, v_messages"),
    (
        "internal/dequeue",
        "v_batch_size, v_messages);",
        "v_batch_size, internal_claimed_messages(1, 1));",
    ),
    ("internal/resume_blocked", "p_again, v_failed);", "p_again, p_message_ids);"),
    ("internal/resume_successors", "v_again, null, 0)", "v_again, null, 'x')"),
    (
        "internal/resume_successors",
        "p_queue_id, v_ids, p_predecessor_id",
        "p_queue_id, v_ids(1), p_predecessor_id",
    ),
    ("routines/complete.sql", "internal_begin_work(v_has_savepoint)", "internal_begin_work(true)"),
    (
        "internal/can_send",
        "v_is_free := internal_lock_bucket",
        "v_dedup_key := internal_lock_bucket",
    ),
    ("internal/first_lane", "p_lane := p_to + 1", "p_to := p_to + 1"),
    ("internal/can_send", "into p_owner_id", "into p_queue_id"),
    ("internal/try_unblock", "p_state := 'free'", "p_state := v_ids"),
)
"""Wrong types of arguments and values, and writes to constants."""


@cache
def sources() -> dict[str, Source]:
    """Return sql/oracle without the packages: files by path, units by name."""
    found: dict[str, Source] = {}
    for script in gate.product():
        relative = script.name.removeprefix("sql/oracle/")
        if not relative.startswith("packages/"):
            found[relative] = source(script.name, script.text)
    return found


@cache
def scripts() -> dict[str, Source]:
    """Return the files whose blocks and statements the client sends unchanged, by name."""
    beside = (source(path.name, path.read_text("utf-8")) for path in migration_scripts("oracle"))
    files = [file for file in sources().values() if file.room in ("oracle", "tables")]
    return {file.name: file for file in (*files, *beside)}


@cache
def known() -> names.Names:
    return names.Names(list(sources().values()))


def findings(file: Source) -> list[tuple[int, str]]:
    """Return the findings of lint and names in a file."""
    rooms = ("internal", "helpers", "routines")
    is_code = file.room in rooms or file.stem in OPTIONAL
    found = [*(lint.problems(file) if is_code else ()), *known().problems(file)]
    for inner in dynamic(file) if file.stem in OPTIONAL else ():
        found += lint.problems(source(file.name, inner))
    return found


def dynamic(file: Source) -> list[str]:
    """Return the dynamic statements of a file, with names for binds."""
    found = []
    for match in BY_TEXT.finditer(file.text):
        text = match[1] or "".join(re.findall(r"'([^']*)'", match[2]))
        found.append(re.sub(r"(?<!\w):(?=\d)", "x", text.strip().replace("{seconds}", "1")))
    return found


def dynamic_scripts() -> list[Script]:
    """Return all dynamic statements, for the grammar."""
    return [
        Script(f"{relative} {number}", f"{text}\n/\n")
        for relative, file in sources().items()
        if file.stem not in NOT_IN_GRAMMAR
        for number, text in enumerate(dynamic(file))
    ]


def planted(relative: str, right: str, wrong: str) -> Source:
    """Return a file with an error in it."""
    file = sources()[relative]
    assert right in file.text, "nothing to plant the error in"
    return source(file.name, file.text.replace(right, wrong, 1))


def planted_errors() -> list[Script]:
    """Return files, each with an error of grammar in it."""
    return [
        Script(f"{wrong!r} in {relative}", planted(relative, right, wrong).text)
        for relative, right, wrong in SYNTAX
    ]


def test_dynamic_statements_are_found() -> None:
    assert len(dynamic_scripts()) > 7


@for_each(sources())
def test_file_follows_the_rules(relative: str) -> None:
    assert not findings(sources()[relative])


@pytest.mark.pitfall("oracle 7", "oracle 9", "oracle 15", "oracle 16", "oracle 17", "oracle 41")
@for_each([*FORMS, *NAMES, *NUMBERS, *KINDS])
def test_planted_error_is_found(relative: str, right: str, wrong: str) -> None:
    assert findings(planted(relative, right, wrong))


@for_each(scripts())
def test_script_has_no_bind_and_counts_agree(name: str) -> None:
    file = scripts()[name]
    assert not [*lint.binds(file), *known().problems(file)]


def test_bind_in_script_is_found() -> None:
    found = list(lint.binds(planted("compiled.sql", "into v_text", "into :text")))
    assert found == [(9, ":text has no value")]


@for_each(name for name, file in scripts().items() if "create table " in file.code)
def test_table_has_its_segment_at_once(name: str) -> None:
    """An index-organized table always has it, and has no clause for it."""
    for body in scripts()[name].code.split("create table ")[1:]:
        rest = body[len(inside(body, body.index("("))) + body.index("(") + 2 :].lstrip()
        assert rest.startswith(("segment creation immediate\n", "organization index"))


@for_each(sorted(SESSIONS_IN_A_BLOCK))
def test_busy_table_has_enough_transaction_entries(stem: str) -> None:
    code = sources()[f"tables/{stem}"].code
    segments = re.findall(
        r"segment creation immediate|(?:create (?:unique )?|organization )index", code
    )
    entries = [int(number) for number in re.findall(r"\binitrans (\d+)", code)]
    assert entries == [SESSIONS_IN_A_BLOCK[stem]] * len(segments)


def test_private_subprograms_and_types_are_used() -> None:
    uses = Counter(word for file in sources().values() for word in re.findall(r"\w+", file.code))
    private = [name for name in known().signatures if name.startswith("internal_")]
    types = [name for name in (*known().fields, *known().items) if name.startswith("t_")]
    for name in private:
        # Its own file names a subprogram twice, at its head and its end.
        assert uses[name] > 2, name
    for name in types:
        assert uses[name] > 1, name


def test_packages_contain_every_subprogram_verbatim() -> None:
    texts = dict(packages(gate.SOURCES))
    files = [
        file for file in sources().values() if file.room in ("internal", "helpers", "routines")
    ]
    assert len(files) > 100
    bodies = texts["rowq_body.sql"] + texts["rowq_wait_body.sql"]
    assert [file.name for file in files if file.text not in bodies] == []
    assert not (gate.SOURCES / "packages").exists()


@pytest.mark.pitfall("oracle 18")
def test_rowq_wait_uses_package_rowq_dynamically() -> None:
    """A package cannot be replaced while another package runs that names it in its code."""
    texts = dict(packages(gate.SOURCES))
    body = source("rowq_wait_body.sql", texts["rowq_wait_body.sql"])
    assert not re.search(r"\browq\.\w", body.code)
    assert re.findall(r"(?:begin|select) rowq\.(\w+)", body.text) == [
        "poll_once", "messages_json", "poll_result_once", "result_json"
    ]  # fmt: skip
    for name, text in texts.items():
        if "dequeue_wait(" in text and name.endswith("_body.sql"):
            assert "rowq.dequeue_wait(" not in text


@pytest.mark.pitfall("oracle 21")
def test_preflight_checks_every_used_sys_package() -> None:
    preflight = release_for("oracle").text("preflight.sql")
    asked = {name.lower() for name in re.findall(r"'((?:DBMS|UTL)_\w+)'", preflight)}
    files = [file for file in sources().values() if file.stem not in OPTIONAL]
    files += [source(path.name, path.read_text("utf-8")) for path in migration_scripts("oracle")]
    called = {name for file in files for name in re.findall(r"\b((?:dbms|utl)_\w+)\.", file.code)}
    # These two are part of PL/SQL.
    assert called - {"dbms_standard", "dbms_db_version"} | {"dbms_output"} == asked


@pytest.mark.pitfall("oracle 19")
def test_tables_with_fixed_statistics_have_their_indexes() -> None:
    """An index without fixed statistics would have those of an empty table."""
    text = sources()["statistics.sql"].text
    pinned = re.findall(r"    set_table\('(\w+)'", text)
    keys = {
        key for file in sources().values() for key in re.findall(r"constraint (\w+_pk)", file.text)
    }
    assert len(pinned) == 17
    assert {f"{table.lower()}_pk" for table in pinned} <= keys
    others = {
        index
        for file in sources().values()
        for index, table in re.findall(r"create index (\w+) on (\w+)", file.text)
        if table.upper() in pinned
    }
    assert {index.lower() for index in re.findall(r"'(\w+_IX)'\)", text)} == others


def declared(text: str) -> dict[str, str]:
    """Return the signatures in a specification or body by name."""
    return {name: " ".join(signature.split()) for signature, name in _signatures(text)}


def _signatures(text: str) -> Iterator[tuple[str, str]]:
    pattern = r"^ *((?:procedure|function) (\w+)(?:\(.*?\))?(?:\s+return \w+)?)(?=;|\s+is\n)"
    for match in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        yield match[1], match[2]


@pytest.mark.parametrize("package", SPECIFICATIONS)
def test_body_matches_its_specification(package: str) -> None:
    texts = dict(packages(gate.SOURCES))
    promised, kept = declared(texts[f"{package}.sql"]), declared(texts[f"{package}_body.sql"])
    assert promised
    assert promised.items() <= kept.items()


def test_body_that_differs_from_specification_is_found() -> None:
    texts = dict(packages(gate.SOURCES))
    promised = declared(texts["rowq.sql"])
    changed = texts["rowq_body.sql"].replace(
        "p_batch_size in number default 1000", "p_limit in number"
    )
    assert not promised.items() <= declared(changed).items()
