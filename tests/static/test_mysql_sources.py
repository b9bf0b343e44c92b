"""Words that the sources for MariaDB and MySQL must not have, and a few that they must have."""

import re

import pytest

from tests.static.each import for_each
from tests.static.sources import SQL, Unit, code, sql_units

FOLDER = SQL / "mysql"
CODE = sql_units("mysql", "internal", "routines")
TABLES = sql_units("mysql", "tables")
BY_KEY = "ready|delayed|claim|finished|message|dedup|dead"
each_file = for_each(CODE)

OVERLAYS = 0
"""Files that differ between MariaDB and MySQL; each says why in its header."""


def test_one_source_serves_both_servers_but_for_the_overlays_that_say_why() -> None:
    overlays = list(FOLDER.glob("overlay/*/*.sql"))
    assert len(overlays) == OVERLAYS
    for path in overlays:
        assert "-- overlay " in path.read_text(encoding="utf-8"), path


@pytest.mark.pitfall("mysql 9", "mysql 11")
@each_file
def test_a_procedure_is_dropped_and_created_in_words_that_both_servers_have(unit: Unit) -> None:
    text = code(unit)
    assert text.startswith("drop procedure if exists rowq.")
    assert text.count("create procedure rowq.") == 1
    for word in ("create or replace", "create function", "returning", "create trigger"):
        assert word not in text, word


@pytest.mark.pitfall("mysql 16")
@each_file
def test_no_look_takes_a_lock_that_it_does_not_name(unit: Unit) -> None:
    text = code(unit)
    assert not re.search(r"\b(else)?if [^;]*\bexists\s*\([^;]*\bthen\b", text)
    assert not re.search(r"\bset \w+ = \(\s*select", text)
    assert not re.search(r"\bdefault \(\s*select", text)
    assert not re.search(r"\bwhile (not )?exists", text)


@pytest.mark.pitfall("mysql 8")
@each_file
def test_no_row_is_inserted_from_a_select_of_our_tables(unit: Unit) -> None:
    for statement in code(unit).split(";"):
        if re.search(r"\binsert (ignore )?into rowq\.(?!archive\b)", statement):
            rest = statement.partition("insert ")[2]
            assert not re.search(r"\bselect\b.*\b(from|\w*join) rowq\.", rest), rest


@each_file
def test_an_index_that_is_asked_for_is_the_primary_key(unit: Unit) -> None:
    named = set(re.findall(r"\bforce index \((\w+)\)", code(unit)))
    others = {"archive_message_ix", "history_message_ix", "result_finished_ix"}
    assert named <= {"primary", "topic_binding_prefix_ix", "topic_binding_pattern_ix", *others}
    assert not re.search(r"\b(use|ignore) index\b", code(unit))


@pytest.mark.pitfall("mysql 14")
@each_file
def test_no_routine_takes_a_lock_by_name(unit: Unit) -> None:
    assert "get_lock(" not in code(unit)


@pytest.mark.pitfall("mysql 17")
@each_file
def test_no_claim_belongs_to_a_session_and_no_query_of_others_is_killed(unit: Unit) -> None:
    assert unit.stem == "health_server" or "connection_id(" not in code(unit)
    assert not re.search(r"\bkill\b", code(unit))


@pytest.mark.pitfall("mysql 10")
@each_file
def test_moments_are_utc_and_not_frozen_at_the_beginning_of_a_statement_that_waits(
    unit: Unit,
) -> None:
    assert not re.search(r"\b(now|current_timestamp|curdate|localtime)\b", code(unit))
    # sysdate is the session's local time, so it may measure a time and be no moment.
    assert unit.stem == "find_idle" or "sysdate" not in code(unit)


@pytest.mark.pitfall("mysql 10")
@for_each(TABLES)
def test_a_table_is_innodb_and_its_moments_have_no_time_zone(unit: Unit) -> None:
    text = code(unit)
    assert "timestamp " not in text
    if "create table" in text:
        assert ") engine = innodb default character set utf8mb4 collate utf8mb4_bin" in text
    for moment in re.findall(r"\bdatetime\b(\S*)", text):
        assert moment.startswith("(6)")


@pytest.mark.pitfall("mysql 5")
@for_each(TABLES)
def test_what_is_hot_has_no_second_index_to_be_locked_in_another_order(unit: Unit) -> None:
    if unit.stem not in BY_KEY.split("|"):
        return
    others = re.findall(r"^    (?:unique )?key (\w+) \((.*)\)", unit.text, re.MULTILINE)
    # An auto_increment column must have a key; nothing reads this one or changes its column.
    allowed = {"finished": [("finish_id_ix", "finish_id")]}
    assert others == allowed.get(unit.stem, [])
