"""rowq's tables and packages for oGRAC, and the client program that takes them there."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from rowq.migrate.engines import release_for
from rowq.oracle.packages import packages
from tests.laboratory.ograc.inline import Inliner
from tests.laboratory.ograc.rules import OBJECTS, rewrite
from tests.laboratory.ograc.source import Routine, parse
from tests.laboratory.ograc.stand_ins import STAND_INS, UNREACHED

SOURCE = Path(__file__).resolve().parents[3] / "sql" / "oracle"
TABLES = (
    "types", "queue", "lane", "message", "ready", "delayed", "claim", "leased", "dead", "dedup",
    "finished", "archive", "message_group", "grouped", "recheck", "blocked", "successor", "door",
    "gate", "started", "meta",
)  # fmt: skip
PACKAGES = ("rowq_produce", "rowq_consume", "rowq_look")
WAITS = "dequeue_wait"

# What the product finds in every Oracle database and not here, and what the rules use.
_BEFORE = """
alter system set use_bison_parser = false;
create table dual (dummy varchar2(1));
insert into dual values ('X');
create table rowq_seen (name varchar2(100));
create global temporary table rowq_id_rows (column_value number) on commit delete rows;
commit;
create or replace procedure raise_application_error(p_code in integer, p_text in varchar2)
is
begin
    dbe_std.throw_exception(p_code, p_text);
end;
/
create or replace function rowq_random return number
is
begin
    return dbe_random.get_value(0, 1);
end;
/
create or replace function rowq_engine return varchar2
is
begin
    return version();
end;
/
create or replace function rowq_lock_request(p_lock in number) return number
is
begin
    return 1 - get_lock('rowq ' || p_lock, 1);
end;
/
create or replace function rowq_lock_release(p_lock in number) return number
is
begin
    return 1 - release_lock('rowq ' || p_lock);
end;
/
create or replace procedure rowq_note(p_name in varchar2)
is
    pragma autonomous_transaction;
    v_seen number := 0;
begin
    -- Only how often somebody looks is counted; of the others once is enough.
    if p_name like 'internal%' and p_name <> 'internal_dequeue' then
        select count(*) into v_seen from rowq_seen where name = p_name and rownum = 1;
    end if;
    if v_seen = 0 then
        insert into rowq_seen (name) values (p_name);
    end if;
    commit;
end;
/
create or replace package rowq_doorbell as
    procedure ring(p_part_id in number);
    procedure listen(p_part_id in number);
end rowq_doorbell;
/
create or replace package body rowq_doorbell as
    procedure ring(p_part_id in number) is
    begin
        rowq_note('ring ' || p_part_id);
    end ring;
    procedure listen(p_part_id in number) is
    begin
        rowq_note('listen ' || p_part_id);
        dbe_std.sleep(1);
    end listen;
end rowq_doorbell;
/
"""
_COLUMN_TYPES = {
    "outcome": "varchar2(20 char)", "due_at": "timestamp(6)", "queue_name": "varchar2(100 char)",
    "check_name": "varchar2(100 char)", "detail": "varchar2(500 char)",
}  # fmt: skip
_META = "insert into rowq_meta (name, value) values ('{}', '{}');\n"


@cache
def _packages() -> dict[str, str]:
    return {f"packages/{name}": text for name, text in packages(SOURCE)}


def files() -> set[str]:
    """Return the paths of all files of sql/oracle, and of the packages assembled from them."""
    paths = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.sql")}
    return {*paths, *_packages()}


def text_of(file: str) -> str:
    """Return the text of one of them."""
    assembled = _packages()
    return assembled[file] if file in assembled else (SOURCE / file).read_text("utf-8")


@cache
def routines() -> dict[str, Routine]:
    """Return the subprograms of the package by name, with the stand-ins in their places."""
    found = {}
    for folder in ("internal", "helpers", "waiting", "routines"):
        for path in sorted((SOURCE / folder).glob("*.sql")):
            if path.name != "types.sql":
                one = parse(rewrite(path.read_text("utf-8"))[0])
                found[one.name] = one
    found.update(STAND_INS)
    return {name: one for name, one in found.items() if name not in UNREACHED}


def public() -> list[str]:
    """Return the names of the routines that users call."""
    return sorted(path.stem for path in (SOURCE / "routines").glob("*.sql"))


@cache
def units() -> dict[str, str]:
    """Return the text of every subprogram that is one of its own, callees first."""
    all_routines = routines()
    types = rewrite((SOURCE / "internal" / "types.sql").read_text("utf-8"))[0]
    inliner = Inliner(all_routines, types, "rowq_note")
    texts = {
        name: _compact(inliner.unit(one, name))
        for name, one in all_routines.items()
        if not one.is_private
    }
    order: dict[str, str] = {}

    def add(name: str) -> None:
        if name not in order:
            for other in re.findall(r"\binternal_\w+", texts[name]):
                if other != name and other in texts:
                    add(other)
            order[name] = texts[name]

    for name in texts:
        add(name)
    return order


def _compact(text: str) -> str:
    return re.sub(r"\n\s*\n+", "\n", re.sub(r"^\s*--[^\n]*\n", "", text, flags=re.MULTILINE))


def installed() -> dict[str, str]:
    """Return what a migration, of which there is none here, would note as installed."""
    newest = release_for("oracle").migrations[-1]
    return {"schema_version": str(newest.number), "rowq_version": newest.rowq_version}


def install_script() -> str:
    """Return the script that installs everything into an empty account."""
    parts = [_BEFORE]
    for name in TABLES:
        text = rewrite((SOURCE / "tables" / f"{name}.sql").read_text("utf-8"))[0]
        parts.append(_compact(text))
    parts += [*(_META.format(*row) for row in installed().items()), "commit;\n"]
    for table, attributes in OBJECTS.values():
        columns = ", ".join(
            f"{one} {_COLUMN_TYPES.get(one, 'number')}" for one in attributes.split()
        )
        parts.append(
            f"create global temporary table {table} ({columns}) on commit preserve rows\n/\n"
        )
    own = units()
    called = ["ids", "put", "look", "messages_json", *public()]
    # What calls ids from within the package is a unit of its own here.
    parts.append(f"create or replace {own['ids']}/\n")
    parts += [f"create or replace {text}/\n" for name, text in own.items() if name not in called]
    parts += [_package(f"packages/{name}.sql") for name in ("rowq", "rowq_wait")]
    passed_on = text_of("packages/rowq_body.sql").rpartition(f"procedure {WAITS}(")
    body = "".join(own[name] for name in called if name != WAITS)
    body += _compact("".join(passed_on[1:]).removesuffix("end rowq;\n/\n"))
    parts.append(f"create or replace package body rowq as\n{body}end rowq;\n/\n")
    parts.append(f"create or replace package body rowq_wait as\n{own[WAITS]}end rowq_wait;\n/\n")
    parts += [_package(f"packages/{name}{part}.sql") for name in PACKAGES for part in ("", "_body")]
    return "\n".join(parts)


def _package(file: str) -> str:
    return _compact(text_of(file)).replace(" authid definer", "")


def install(client: Client) -> None:
    """Install everything into the client's account. Raises RefusedError if anything is amiss."""
    output = client.run(install_script())
    if fault := re.search(r"Warning:\s+([^\n]*\n[^\n]*)|OG-\d+, ([^\n]*)", output):
        raise RefusedError(0, fault[1] or fault[2])


class RefusedError(Exception):
    """An error that a call has raised: its number is code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code} {text}")
        self.code = code


class Client:
    """Runs scripts with oGRAC's client program.

    program: the path of ogsql; its libraries are in lib beside its folder.
    connect: user/password@host:port.
    """

    def __init__(self, program: Path, connect: str) -> None:
        self._program = program
        self._connect = connect

    def run(self, script: str) -> str:
        """Run a script and return what the program prints. Raises CalledProcessError."""
        libraries = str(self._program.parents[1] / "lib")
        with tempfile.NamedTemporaryFile("w", suffix=".sql", encoding="utf-8") as file:
            file.write(script)
            file.flush()
            done = subprocess.run(
                [str(self._program), self._connect, "-q", "-f", file.name],
                capture_output=True, text=True, timeout=300, check=True,
                env={**os.environ, "LD_LIBRARY_PATH": libraries},
            )  # fmt: skip
        return done.stdout

    def rows(self, script: str) -> list[dict[str, str]]:
        """Return the rows of a script's last result. Raises RefusedError."""
        output = self.run(script)
        error = re.search(r"OG-(-20\d{3}), ([^\n]*)", output)
        error = error or re.search(r"OG-(\d+), ([^\n]*(?:\n\[[^\n]*)*)", output)
        if error:
            raise RefusedError(int(error[1]), error[2])
        return _table(output)

    def call(self, name: str, **arguments: str) -> list[dict[str, str]]:
        """Call a routine, commit, and return its rows; arguments are expressions of SQL."""
        given = "".join(f"p_{key} => {value}, " for key, value in arguments.items())
        return self.rows(
            "declare\n    v_rows sys_refcursor;\nbegin\n"
            f"    {name}({given}p_rows => v_rows);\n    dbe_sql.return_cursor(v_rows);\nend;\n/\n"
            "commit;\n"
        )


def _table(output: str) -> list[dict[str, str]]:
    lines = output.splitlines()
    rules = [at for at, line in enumerate(lines) if re.fullmatch(r"-[- ]*", line)]
    if not rules:
        return []
    at = rules[-1]
    spans = [found.span() for found in re.finditer(r"-+", lines[at])]
    names = [lines[at - 1][start:end].strip().lower() for start, end in spans]
    rows = []
    for line in lines[at + 1 :]:
        if not line.strip() or re.fullmatch(r"\d+ rows fetched\.", line.strip()):
            break
        values = [line[start:end].strip() for start, end in spans]
        rows.append(dict(zip(names, values, strict=True)))
    return rows
