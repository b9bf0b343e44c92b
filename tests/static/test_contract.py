"""Files, signatures, errors, rights and tests agree with sql/contract.toml."""

import re
from pathlib import Path
from typing import Any

import pytest

from rowq.tools.engines.oracle.packages import ROLES, packages
from tests.static.each import for_each
from tests.static.sources import (
    CONTRACT,
    ENGINES,
    ROOT,
    SQL,
    errors_of,
    name_on,
    routines_of,
    sql_files,
)

LONG_TEXTS = {"body", "error", "header_value", "progress"}
"""Texts that may exceed Oracle's varchar2."""

UNREACHABLE = {
    # It handles the error, or completes a claim only while its row is locked.
    **{(engine, "complete_and_dequeue"): {"RQ721"} for engine in ENGINES},
    # It releases messages of its own new claim.
    ("mysql", "dequeue_wait"): {"RQ721"},
    ("postgres", "dequeue_wait"): {"RQ721"},
    ("sqlserver", "dequeue_wait"): {"RQ721"},
    # It sets the session's variables before it opens a transaction.
    ("mysql", "after_failover"): {"RQ711"},
    # They require a queue only if one is passed.
    **{(engine, "list_schedules"): {"RQ711"} for engine in ENGINES},
    **{(engine, "list_workers"): {"RQ711"} for engine in ENGINES},
    ("mysql", "list_topics"): {"RQ711"},
    ("oracle", "list_topics"): {"RQ711"},
    ("postgres", "list_topics"): {"RQ711"},
    ("sqlserver", "list_topics"): {"RQ711"},
    # It enqueues into a queue that cannot be dropped now; in a serializable transaction on Oracle,
    # a dropped one raises ORA-08177.
    ("oracle", "publish"): {"RQ701"},
    ("oracle", "publish_batch"): {"RQ701"},
    ("postgres", "publish"): {"RQ701"},
    ("postgres", "publish_batch"): {"RQ701"},
    # It shares a helper with enqueue_batch but has no queue.
    ("sqlserver", "publish_batch"): {"RQ701"},
}
"""Errors of called helpers that cannot occur in a routine."""

ROUTINES = [(engine, name) for engine in ENGINES for name in routines_of(engine)]

_SIGNATURES = {
    "mysql": re.compile(
        r"^create (procedure) rowq\.(\w+)\(\s*(.*?)\s*\)\nsql security definer\n()",
        re.MULTILINE | re.DOTALL,
    ),
    "oracle": re.compile(r"\A(procedure) (\w+)\(\s*(.*?)\s*\)\nis\n()", re.DOTALL),
    "postgres": re.compile(
        r"^create or replace (function|procedure) rowq\.(\w+)\(\s*(.*?)\s*\)\s*"
        r"(?:returns table \(\s*(.*?)\s*\)\s*)?language ",
        re.MULTILINE | re.DOTALL,
    ),
    "sqlserver": re.compile(
        r"^create or alter (procedure) rowq\.(\w+)\s*(.*?)\s*\n(?:with execute as owner\n)?as\n()",
        re.MULTILINE | re.DOTALL,
    ),
}
_INCLUDE = {
    "mysql": r"^-- source (?!\.\./)(\S+)$",
    "oracle": r"^@@(\S+)$",
    "postgres": r"^\\ir (?!\.\./)(\S+)$",
    "sqlserver": r"^:r (?!\.\./)(\S+)$",
}
_PARAMETERS = {
    "mysql": re.compile(r"(?:(inout|in) )?p_(\w+) +(.+?)()"),
    "oracle": re.compile(r"()p_(\w+) +in (.+?)(?: default (\S+))?"),
    "postgres": re.compile(r"(?:(inout|in) )?p_(\w+) +(.+?)(?: default (\S+))?"),
    "sqlserver": re.compile(r"()@(\w+) +(.+?)(?: = (\S+))?"),
}
_SELECTED = re.compile(r"open p_rows for\n +select (?:/\*.*?\*/)?(.*?)\n        from ", re.DOTALL)
_COLUMN = re.compile(r'"?(\w+)"? +(.+)')
_MESSAGE = re.compile(r"'(RQ\d{3}) (\w+): ")
_PROMISES = re.compile(r"\bpromise\(([^)]*)\)")


def routine_file(engine: str, name: str) -> str:
    return (SQL / engine / "routines" / f"{name}.sql").read_text(encoding="utf-8")


def signature(engine: str, name: str) -> tuple[str, str, str]:
    """Return kind, parameters and columns from a routine's file."""
    return signature_in(routine_file(engine, name), engine, name)


def signature_in(text: str, engine: str, name: str) -> tuple[str, str, str]:
    """Return kind, parameters and columns from a routine's text."""
    match = _SIGNATURES[engine].search(text)
    assert match, f"{name}: the signature is not in the house style"
    assert match.group(2) == name_on(engine, name)
    return match.group(1), match.group(3), match.group(4) or ""


def split(text: str) -> list[str]:
    return [part.strip() for part in re.split(r",\s", text) if part.strip()]


def spelled(engine: str, kind: str) -> str:
    return str(CONTRACT["types"][kind][engine])


@pytest.mark.parametrize("engine", ENGINES)
def test_engine_has_exactly_one_file_per_routine(engine: str) -> None:
    files = {path.stem for path in sql_files(engine, "routines")}
    assert files == routines_of(engine).keys()


def overloads_of(engine: str) -> list[tuple[str, str, str]]:
    """Return routine, parameter and type of an engine's overloads."""
    return [
        (name, parameter, type_)
        for name, entry in routines_of(engine).items()
        for parameter, types in entry.get("overloads", {}).get(engine, {}).items()
        for type_ in types
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_engine_has_exactly_one_file_per_overload(engine: str) -> None:
    files = [path.stem for path in sql_files(engine, "overloads")]
    assert files == sorted(f"{name}_{type_}" for name, _, type_ in overloads_of(engine))


@pytest.mark.parametrize(("name", "parameter", "type_"), overloads_of("postgres"))
def test_overload_differs_by_type_of_one_required_parameter(
    name: str, parameter: str, type_: str
) -> None:
    path = SQL / "postgres" / "overloads" / f"{name}_{type_}.sql"
    kind, parameters, columns = signature_in(path.read_text(encoding="utf-8"), "postgres", name)
    first_kind, first_parameters, first_columns = signature("postgres", name)
    wanted = [
        f"p_{parameter} {type_}" if part.split()[0] == f"p_{parameter}" else part
        for part in split(" ".join(first_parameters.split()))
    ]
    assert split(" ".join(parameters.split())) == wanted
    assert (kind, columns) == (first_kind, first_columns)


def test_short_form_has_the_first_parameters_of_its_routine() -> None:
    short = {name: entry for name, entry in CONTRACT["routine"].items() if "short_form_of" in entry}
    assert short
    for entry in short.values():
        full = CONTRACT["routine"][entry["short_form_of"]]
        assert set(entry["engines"]) == {"mysql"}, "the engine whose parameters have no defaults"
        names = [given["name"] for given in full["parameters"]]
        count = len(entry["parameters"])
        assert entry["parameters"] == [{"name": name} for name in names[:count]]
        assert count < len(names)
        for key in ("group", "columns", "errors", "roles"):
            assert entry[key] == full[key], key
        for key in ("outcomes", "promises"):
            assert set(entry[key]) <= set(full[key]), key


@pytest.mark.parametrize("engine", ENGINES)
def test_install_sql_includes_every_file_once(engine: str) -> None:
    text = (SQL / engine / "install.sql").read_text(encoding="utf-8")
    named = re.findall(rf"{_INCLUDE[engine]}|^-- source (comments\.sql)$", text, re.MULTILINE)
    named = ["".join(found) if isinstance(found, tuple) else found for found in named]
    # Oracle's subprograms are in packages, whose compile errors compiled.sql raises. Every
    # migration runs the files beside the folders.
    is_oracle = engine == "oracle"
    rooms = ("tables",) if is_oracle else ()
    files = [path.relative_to(SQL / engine).as_posix() for path in sql_files(engine, *rooms)]
    if is_oracle:
        files += [f"packages/{name}" for name, _ in packages(SQL / engine)]
        files += ["statistics.sql", "compiled.sql"]
    beside = [] if engine == "mysql" else ["comments.sql"]
    assert sorted(named) == sorted([*files, *beside, "grants.sql"])
    assert named[-len(beside) - 1 :] == [*beside, "grants.sql"]


@for_each(ROUTINES)
def test_parameters_have_contract_order_types_and_defaults(engine: str, name: str) -> None:
    entry = routines_of(engine)[name]
    kind, parameters, _ = signature(engine, name)
    # Elsewhere a result set or cursor returns the columns, and MySQL has no defaults.
    is_postgres = engine == "postgres"
    wanted = [
        (
            given.get("direction", ""),
            given["name"],
            spelled_for(engine, given["name"]),
            "" if engine == "mysql" else default_on(engine, given),
        )
        for given in entry["parameters"]
        if is_postgres or "direction" not in given
    ]
    listed = [" ".join(part.split()) for part in split(parameters)]
    if engine == "oracle":
        assert listed.pop() == "p_rows out sys_refcursor"
    found = [_PARAMETERS[engine].fullmatch(part) for part in listed]
    assert [match and match.groups("") for match in found] == wanted
    assert kind == (entry.get("kind", "function") if is_postgres else "procedure")


def spelled_for(engine: str, parameter: str) -> str:
    """Return an engine's type of a parameter."""
    if engine == "oracle" and parameter in LONG_TEXTS:
        return "clob"
    return spelled(engine, CONTRACT["parameters"][parameter]["type"])


def default_on(engine: str, given: dict[str, str]) -> str:
    """Return a parameter's default on an engine, empty if it has none."""
    default = given.get("default", "")
    has_numbers = engine in {"oracle", "sqlserver"}
    return {"true": "1", "false": "0"}.get(default, default) if has_numbers else default


@for_each(routines_of("oracle"))
def test_oracle_columns_have_contract_order(name: str) -> None:
    for listed in _SELECTED.findall(routine_file("oracle", name)):
        columns = [part.split()[-1].rpartition(".")[2] for part in top_level(listed)]
        assert columns == routines_of("oracle")[name]["columns"]


def top_level(text: str) -> list[str]:
    """Split a text at the commas outside parentheses."""
    depths = [text[:place].count("(") - text[:place].count(")") for place in range(len(text))]
    marked = "".join(
        "\0" if character == "," and not depths[at] else character
        for at, character in enumerate(text)
    )
    return marked.split("\0")


@for_each(routines_of("postgres"))
def test_postgres_columns_have_contract_order_and_types(name: str) -> None:
    engine, entry = "postgres", routines_of("postgres")[name]
    kind, _, columns = signature(engine, name)
    if kind == "procedure":
        assert [given["name"] for given in entry["parameters"][-1:]] == entry["columns"]
        return
    wanted = [(column, spelled(engine, type_of(column))) for column in entry["columns"]]
    found = [_COLUMN.fullmatch(" ".join(part.split())) for part in split(columns)]
    assert [match and match.groups() for match in found] == wanted


def type_of(column: str) -> str:
    return str(CONTRACT["columns"][column]["type"])


@for_each(ROUTINES)
def test_routine_raises_exactly_its_declared_errors(engine: str, name: str) -> None:
    possible = errors_of(engine, name_on(engine, name)) - UNREACHABLE.get((engine, name), set())
    assert possible == set(routines_of(engine)[name]["errors"])


@pytest.mark.parametrize("engine", ENGINES)
def test_error_text_begins_with_number_and_name(engine: str) -> None:
    for path in sql_files(engine, "internal", "routines", "overloads"):
        text = path.read_text(encoding="utf-8")
        said = _MESSAGE.findall(text)
        raised = re.findall(
            r"errcode = |signal sqlstate '45|throw 52|raise_application_error\(", text
        )
        assert len(said) == len(raised), f"{path.name} raises in another form"
        for number, name in said:
            assert CONTRACT["errors"][number]["name"] == name, path.name


def test_every_error_and_outcome_is_used() -> None:
    routines: list[dict[str, Any]] = list(CONTRACT["routine"].values())
    # Errors with `nodes` are raised by forwarders, not by routines.
    of_routines = {number for number, e in CONTRACT["errors"].items() if "nodes" not in e}
    assert {number for entry in routines for number in entry["errors"]} == of_routines
    sources = {
        engine: "\n".join(path.read_text(encoding="utf-8") for path in sql_files(engine))
        for engine in ENGINES
    }
    for engine, name in ROUTINES:
        texts = sources[engine]
        for outcome in CONTRACT["routine"][name].get("outcomes", ()):
            assert f"'{outcome}'" in texts, f"{name} never says {outcome}"


def test_contract_describes_exactly_the_names_it_uses() -> None:
    routines: list[dict[str, Any]] = list(CONTRACT["routine"].values())
    parameters = {given["name"] for entry in routines for given in entry["parameters"]}
    columns = {column for entry in routines for column in entry["columns"]}
    assert parameters == CONTRACT["parameters"].keys()
    assert columns == CONTRACT["columns"].keys()
    described = [*CONTRACT["parameters"].values(), *CONTRACT["columns"].values()]
    assert {described_type["type"] for described_type in described} == CONTRACT["types"].keys()


def test_contract_limits_entries_to_known_engines() -> None:
    entries = [
        entry for kind in ("routine", "parameters", "columns") for entry in CONTRACT[kind].values()
    ]
    named = {engine for entry in entries for engine in entry.get("engines", ())}
    named |= {engine for engines in CONTRACT["promise_engines"].values() for engine in engines}
    for entry in CONTRACT["routine"].values():
        assert entry.get("error_engines", {}).keys() <= set(entry["errors"])
        named |= {engine for by in entry.get("error_engines", {}).values() for engine in by}
    assert CONTRACT["promise_engines"].keys() <= CONTRACT["promises"].keys()
    assert named <= set(CONTRACT["types"]["text"])


def test_every_promise_belongs_to_a_routine() -> None:
    cited = {number for entry in CONTRACT["routine"].values() for number in entry["promises"]}
    assert cited <= CONTRACT["promises"].keys()
    assert CONTRACT["promises"].keys() - cited <= {"P16"}, "P16 is about every routine"


def promises_cited(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    return {number for call in _PROMISES.findall(text) for number in re.findall(r"P\d\d", call)}


def test_tests_cite_exactly_the_promises() -> None:
    cited = {
        number for path in (ROOT / "tests").rglob("test_*.py") for number in promises_cited(path)
    }
    assert cited == CONTRACT["promises"].keys()


def test_purposes_are_short() -> None:
    long = [name for name, entry in CONTRACT["routine"].items() if len(entry["purpose"]) > 100]
    assert not long, "a purpose has at most 100 characters; the rest goes to details"


def test_oracle_grants_give_each_role_its_package() -> None:
    text = (SQL / "oracle" / "grants.sql").read_text(encoding="utf-8")
    given = set(re.findall(r"^    give\('rowq_(\w+)', '(\w+)'\);$", text, re.MULTILINE))
    kept = {
        (role.lower(), name.lower())
        for role, name in re.findall(r"\('ROWQ_(\w+)', '(\w+)'\)", text)
    }
    lists = {(role, "rowq_ids") for role in ("producer", "consumer", "admin")}
    assert given == kept == {*ROLES.items(), ("admin", "rowq"), *lists}


def test_sqlserver_grants_give_each_role_only_its_routines() -> None:
    text = (SQL / "sqlserver" / "grants.sql").read_text(encoding="utf-8")
    given = re.findall(r"^grant (\w+) on (\S+) to rowq_(\w+);$", text, re.MULTILINE)
    wanted = [
        ("execute", f"rowq.{name_on('sqlserver', name)}", role)
        for name, entry in routines_of("sqlserver").items()
        for role in entry["roles"]
    ]
    # A procedure with a variable of a table type requires a right on the type from its caller.
    types = re.findall(r"^create type (\S+) as table", tsql_types(), re.MULTILINE)
    roles = {role for _, _, role in wanted}
    wanted += [("execute", f"type::{name}", role) for name in types for role in roles]
    assert sorted(given) == sorted(wanted)


def tsql_types() -> str:
    return (SQL / "sqlserver" / "tables.sql").read_text(encoding="utf-8")


def test_groups_are_those_used_in_code() -> None:
    """sql/generate/typescript.py, tests/chaos and the Citus add-on use these words."""
    assert {entry["group"] for entry in CONTRACT["routine"].values()} == {
        *("admin", "consume", "finish", "inspect", "maintenance", "produce", "schedule")
    }
