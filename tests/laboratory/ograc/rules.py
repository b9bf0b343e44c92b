"""What oGRAC cannot execute as it is written for Oracle, and what it is given instead.

The product is written for Oracle Database and never bent for oGRAC. Here a subprogram becomes one
that oGRAC executes with the same outcome for one session after the other; private subprograms are
put in the place of their calls by ograc_inline.py.
"""

import re
from functools import partial

from tests.laboratory.rules import Rule, applied, rule


def _forall(found: re.Match[str]) -> str:
    indent, index, last, statement = found.groups()
    return f"{indent}for {index} in 1 .. {last} loop\n{statement};\n{indent}end loop;"


def _sparse(found: re.Match[str]) -> str:
    indent, index, places, statement = found.groups()
    return (
        f"{indent}for {index} in 1 .. coalesce({places}.last, 0) loop\n"
        f"{indent}if {places}.exists({index}) then\n{statement};\n{indent}end if;\n"
        f"{indent}end loop;"
    )


def _gathered(found: re.Match[str]) -> str:
    indent, index, last, statement, call = found.groups()
    return f"{indent}for {index} in 1 .. {last} loop\n{statement};\n    {call}\n{indent}end loop;"


def _counted(found: re.Match[str]) -> str:
    indent, index, last, statement = found.groups()
    # What one statement returns is the first of a list each time.
    first = f"{indent}    v_hit := 0;\n" if "returning" in statement else ""
    loop = f"{indent}for {index} in 1 .. {last} loop\n{first}{statement};\n"
    return f"{loop}{indent}    if sql%rowcount = 1"


# The attributes of an object type, and the table that stands for rows of that type.
OBJECTS = {
    "v_lines": ("rowq_line_rows", "place message_id lane attempt outcome due_at"),
    "v_rows": (
        "rowq_kept_rows",
        "queue_name elected promoted reaped died archived purged partitions_dropped",
    ),
    "v_counts": (
        "rowq_count_rows",
        "part_id ready_count delayed_count leased_count dead_count blocked_count oldest_seconds",
    ),
    "v_checks": ("rowq_check_rows", "check_name queue_name measured warning critical detail"),
}


def _as_table(found: re.Match[str]) -> str:
    """Return `open ... from table(objects)` as one that reads a table."""
    opened, name = found[1], found[2]
    table, attributes = OBJECTS[name]
    names = attributes.split()
    values = ", ".join(f"{name}(i).{one}" for one in names)
    return (
        f"    delete from {table};\n    for i in 1 .. {name}.count loop\n"
        f"        insert into {table} ({', '.join(names)}) values ({values});\n    end loop;\n"
        f"{opened}{table}"
    )


def _id_rows(found: re.Match[str]) -> str:
    indent = found[1]
    name = "p_ids" if re.search(r"\bp_ids +in rowq_ids", found.string) else "v_ids"
    return (
        f"{indent}delete from rowq_id_rows;\n{indent}for i in 1 .. {name}.count loop\n"
        f"{indent}    insert into rowq_id_rows (column_value) values ({name}(i));\n"
        f"{indent}end loop;\n{indent}"
    )


def _locked(found: re.Match[str]) -> str:
    names = [one.strip() for one in found[1].split(",")]
    return "\n".join(
        f"        execute immediate 'lock table {one} in share mode';" for one in names
    )


def _padded(found: re.Match[str]) -> str:
    return f"lpad(to_char({found[1]}), {len(found[2])}, '0')"


def _unformatted(found: re.Match[str]) -> str:
    return ")" if found[0].endswith(")") else ""


def _called_directly(found: re.Match[str]) -> str:
    return f"rowq.look({re.sub(r'(?<!_)(?:in|out) (?=[pv]_)', '', found[1])});"


# The numbers that oGRAC gives to these errors of Oracle.
_NUMBERS = {"54": 723, "60": 716, "942": 843, "1031": 1001, "30006": 717, "2291": 1223, "1013": 718}
# It has no such errors; any other number will do.
_NUMBERS |= {"8177": 721, "4092": 719, "2074": 720, "41900": 1002, "22831": 719, "22275": 720}


def _moved(found: re.Match[str]) -> str:
    """Return two declarations whose values are assigned in the statements."""
    indent, name, condition, one, other, moment, value, rest = found.groups()
    return (
        f"{indent}{name} number;\n{indent}{moment};{rest}"
        f"    if {condition} then\n        {name} := {one};\n"
        f"    else\n        {name} := {other};\n    end if;\n"
        f"    {moment.split()[0]} := {value};\n"
    )


def _number(found: re.Match[str]) -> str:
    return str(_NUMBERS[found[0].removeprefix("-")])


_rule = partial(rule, flags=re.MULTILINE)
_CLAUSE = r"\s*lob \(\w+\) store as securefile \w+ \([^)]*\)"

# In this order: a later rule finds what an earlier one has left.
RULES = (
    _rule("LOB storage", _CLAUSE, ""),
    _rule(
        "CREATE INDEX inside a constraint",
        r"\s*using index \(\s*create unique index \w+ on \w+ \([^)]*\)[^)]*\)",
        "",
    ),
    _rule("ORGANIZATION INDEX", r"organization index ", ""),
    _rule("CHECK (... IS JSON)", r",\s*constraint \w+ check \(\w+ is json strict\)", ""),
    _rule("end of CREATE TYPE", r"(^create or replace type [^/]*)\n/", r"\1;\n/"),
    _rule("CONSTANT", r"(?<=\w )constant (?=[a-z])|(?<=  )constant (?=[a-z])", ""),
    _rule(
        "SQL%BULK_ROWCOUNT",
        r"^( *)forall (\w+) in 1 \.\. ([\w.]+)\n([^;]*);\n(?: *--[^\n]*\n)*"
        r" *for i in 1 \.\. [\w.]+ loop\n\s*if sql%bulk_rowcount\(i\) = 1",
        _counted,
    ),
    _rule(
        "RETURNING BULK COLLECT of a FORALL",
        r"^( *)forall (\w+) in 1 \.\. ([\w.]+)\n"
        r"([^;]*?returning [\w., \n]* bulk collect into [^;]*);\n"
        r"( *internal_cut_ties\([^;]*;)",
        _gathered,
    ),
    _rule("FORALL ... INDICES OF", r"^( *)forall (\w+) in indices of (\w+)\n([^;]*);", _sparse),
    _rule("FORALL", r"^( *)forall (\w+) in 1 \.\. ([\w.]+)\n([^;]*);", _forall),
    _rule(
        "TABLE() of objects",
        r"^(    open p_rows for\n(?:(?!;)[\s\S])*?from )"
        r"table\((v_lines|v_rows|v_counts|v_checks)\)",
        _as_table,
    ),
    _rule("TABLE() of numbers in a cursor", r"(?<=from )table\((?:p_ids|v_ids)\)", "rowq_id_rows"),
    _rule(
        "the rows that the rule before reads",
        r"^( *)(?=open (?:message|blocked|dead)_rows;\n.* limit c_most;|open asked_for;)",
        _id_rows,
    ),
    _rule("TABLE() of numbers", r"(?<= )table\((\w+)\)", r"table(cast(\1 as rowq_ids))"),
    _rule("FETCH FIRST", r"fetch first (\w+) rows only", r"limit \1"),
    _rule("DBMS_LOB.GETLENGTH", r"dbms_lob\.getlength\(", "lengthb("),
    _rule(
        "DBMS_LOB.SUBSTR",
        r"dbms_lob\.substr\(([\w.]+), ([^,]+), (\w+)\)",
        r"substr(\1, \3, \2)",
    ),
    _rule("LENGTH2", r"\blength2\(", "length("),
    _rule("DBMS_SESSION.SLEEP", r"dbms_session\.sleep\([^;]*;", "dbe_std.sleep(1);"),
    _rule(
        "DBMS_UTILITY.GET_HASH_VALUE",
        r"dbms_utility\.get_hash_value\((.*), 0, (\w+)\)",
        r"mod(length(\1), \2)",
    ),
    _rule(
        "UTL_RAW.CONCAT",
        r"utl_raw\.concat\((\w+), hextoraw\('(\w+)'\)\)",
        r"hextoraw(rawtohex(\1) || '\2')",
    ),
    _rule(
        "a record's fields in a declaration",
        r"^( *)(\w+)( +)number := case\n *when ([^\n]*) then ([^\n]*)\n *else (\w+)\n *end;"
        r"([\s\S]*?^begin\n)",
        r"\1\2\3number;\7    if \4 then\n        \2 := \5;\n    else\n"
        r"        \2 := \6;\n    end if;\n",
    ),
    _rule(
        "a moment made of a record's fields in a declaration",
        r"^( *)(\w+) number :=\n *case when ([^;]*) then ([^;]*) else ([^;]*) end;\n"
        r" *(\w+ +timestamp\(6\)) :=\n *([^;]*);([\s\S]*?^begin\n)",
        _moved,
    ),
    _rule("ORA_HASH", r"ora_hash\(([\w.]+), [^)]*\)", r"\1"),
    _rule("NLSSORT", r"nlssort\(([\w.]+), 'nls_sort=binary'\)", r"\1"),
    _rule("NLS parameters", r",\s*'nls_\w+=[^']*(?:''[^']*)*'(?=\s*\))", ""),
    _rule("number format FM000", r"to_char\(([\w()]+), 'fm(0+)'\)", _padded),
    _rule("number format TM9", r"to_char\((\w+), 'tm9'\)", r"to_char(\1)"),
    _rule("SQLCODE", r"\bsqlcode\b", "sql_err_code"),
    _rule("SQLERRM", r"\bsqlerrm\b", "sql_err_msg"),
    _rule(
        "LOCK TABLE of several tables",
        r"^ *lock table ([\w, \n]*?)\s+in share row exclusive mode wait 1;",
        _locked,
    ),
    _rule(
        "the open transaction",
        r"dbms_transaction\.local_transaction_id is not null",
        "1 = 0",
        True,
    ),
    _rule(
        "PRODUCT_COMPONENT_VERSION",
        r"\(\s*select max\(p\.product[^)]*\)\s*from product_component_version p[^)]*\)",
        "rowq_engine()",
    ),
    _rule(
        "a condition as an argument",
        r"^( *)(\w+\(\s*[^;]*?, )"
        r"((?:coalesce\(\w+, 0\)|[\w.()]+) (?:= 1|is not null))((?:, \w+)?\s*\));",
        r"\1if \3 then\n\1    \2true\4;\n\1else\n\1    \2false\4;\n\1end if;",
    ),
    _rule(
        "a condition that is returned",
        r"^( *)return ([\w.]+ (?:[>=] 0|in \([\d, ]+\)|is not null)|not \w+);",
        r"\1if \2 then\n\1    return true;\n\1end if;\n\1return false;",
    ),
    _rule(
        "a condition that is assigned",
        r"^( *)([pv]_(?:in_text|escaped|(?:is|has)_\w+)) := "
        r"([^;]*(?: or | and |<>|not | = | > )[^;]*);",
        r"\1if \3 then\n\1    \2 := true;\n\1else\n\1    \2 := false;\n\1end if;",
    ),
    _rule(
        "a savepoint of another subprogram",
        r"^    (?:    )?internal_begin_work\(v_has_savepoint\);",
        "    savepoint rowq_call;",
    ),
    _rule(
        "a rollback to it",
        r"^        internal_roll_back\(v_has_savepoint\);",
        "        rollback to savepoint rowq_call;",
    ),
    _rule("variables of type ROWID", r"(?<= )rowid(?=;|,$| index by)", "varchar2(64)"),
    _rule("a ROWID compared with a variable", r"\b(\w)\.rowid = ", r"\1.rowid || '' = "),
    _rule("TO_NUMBER with a format", r", '9999'\)|(?<=2\)), '99'(?=\))", _unformatted),
    _rule("INTERVAL DAY(9)", r"day\(9\)", "day(7)"),
    _rule("VARCHAR2(32767)", r"varchar2\(32767\)", "varchar2(8000)"),
    _rule(
        "numbers of Oracle's errors",
        r"(?<=, )-(?:54|60|942|1013|1031|30006|2291|8177|4092|2074|41900|22831|22275)(?=\))",
        _number,
    ),
    _rule("KEEP (DENSE_RANK ...)", r" keep \(dense_rank (?:last|first) order by [\w.]+\)", ""),
    _rule("USER_SEQUENCES", r"from user_sequences s\b", "from my_sequences s"),
    _rule("USER_OBJECTS", r"from user_objects o\b", "from my_objects o"),
    _rule(
        "DBMS_LOCK, and OUT binds of a block that is sent by text",
        r"execute immediate\s+'begin :1 := sys\.dbms_lock\.(\w+)\([^;]*;[^;]*;[^;]*;",
        r"v_result := rowq_lock_\1(p_lock);",
    ),
    _rule(
        "OUT binds of a block that is sent by text",
        r"execute immediate c_look\s+using ([^;]*);",
        _called_directly,
    ),
    _rule(
        "a cursor of a query that is sent by text",
        r"open p_rows for c_messages using ([^;]*);",
        r"open p_rows for select rowq.messages_json(\1) as messages from dual;",
    ),
    _rule(
        "V$TRANSACTION, V$SESSION",
        r"^    begin\n(?: *--[^\n]*\n)*        execute immediate q'\[[\s\S]*?^    end;\n",
        "    v_seconds := null;\n",
        True,
    ),
)


def rewrite(text: str) -> tuple[str, list[Rule]]:
    """Return what oGRAC executes, and the rules that made it."""
    return applied(RULES, text)
