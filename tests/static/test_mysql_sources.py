"""Forbidden and required words in the SQL for MariaDB and MySQL."""

import re

import pytest

from tests.static.each import for_each
from tests.static.sources import Unit, code, sql_units

CODE = sql_units("mysql", "internal", "routines")
TABLES = sql_units("mysql", "tables")
BY_KEY = "ready|delayed|claim|finished|message|dedup|dead"
each_file = for_each(CODE)


@pytest.mark.pitfall("mysql 9", "mysql 11")
@each_file
def test_procedure_uses_syntax_of_both_servers(unit: Unit) -> None:
    text = code(unit)
    assert text.startswith("drop procedure if exists rowq.")
    assert text.count("create procedure rowq.") == 1
    for word in ("create or replace", "create function", "returning", "create trigger"):
        assert word not in text, word


@pytest.mark.pitfall("mysql 16")
@each_file
def test_reads_take_no_implicit_lock(unit: Unit) -> None:
    text = code(unit)
    assert not re.search(r"\b(else)?if [^;]*\bexists\s*\([^;]*\bthen\b", text)
    assert not re.search(r"\bset \w+ = \(\s*select", text)
    assert not re.search(r"\bdefault \(\s*select", text)
    assert not re.search(r"\bwhile (not )?exists", text)


@pytest.mark.pitfall("mysql 8")
@each_file
def test_no_insert_selects_from_rowq_tables(unit: Unit) -> None:
    for statement in code(unit).split(";"):
        if re.search(r"\binsert (ignore )?into rowq\.(?!archive\b)", statement):
            rest = statement.partition("insert ")[2]
            assert not re.search(r"\bselect\b.*\b(from|\w*join) rowq\.", rest), rest


@each_file
def test_forced_index_is_the_primary_key(unit: Unit) -> None:
    named = set(re.findall(r"\bforce index \((\w+)\)", code(unit)))
    others = {"archive_message_ix", "history_message_ix", "result_finished_ix"}
    assert named <= {"primary", "topic_binding_prefix_ix", "topic_binding_pattern_ix", *others}
    assert not re.search(r"\b(use|ignore) index\b", code(unit))


@pytest.mark.pitfall("mysql 14")
@each_file
def test_no_routine_takes_a_named_lock(unit: Unit) -> None:
    assert "get_lock(" not in code(unit)


@pytest.mark.pitfall("mysql 17")
@each_file
def test_no_routine_uses_session_ids_or_kill(unit: Unit) -> None:
    assert unit.stem == "health_server" or "connection_id(" not in code(unit)
    assert not re.search(r"\bkill\b", code(unit))


@pytest.mark.pitfall("mysql 10")
@each_file
def test_times_are_utc_and_current(unit: Unit) -> None:
    assert not re.search(r"\b(now|current_timestamp|curdate|localtime)\b", code(unit))
    # sysdate is local time: it may only measure a duration.
    assert unit.stem == "find_idle" or "sysdate" not in code(unit)


@pytest.mark.pitfall("mysql 10")
@for_each(TABLES)
def test_table_is_innodb_and_uses_datetime_6(unit: Unit) -> None:
    text = code(unit)
    assert "timestamp " not in text
    if "create table" in text:
        assert ") engine = innodb default character set utf8mb4 collate utf8mb4_bin" in text
    for precision in re.findall(r"\bdatetime\b(\S*)", text):
        assert precision.startswith("(6)")


@pytest.mark.pitfall("mysql 5")
@for_each(TABLES)
def test_hot_table_has_no_second_index(unit: Unit) -> None:
    if unit.stem not in BY_KEY.split("|"):
        return
    others = re.findall(r"^    (?:unique )?key (\w+) \((.*)\)", unit.text, re.MULTILINE)
    # An auto_increment column requires a key, which nothing reads.
    allowed = {"finished": [("finish_id_ix", "finish_id")]}
    assert others == allowed.get(unit.stem, [])
