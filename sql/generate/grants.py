"""The contract's rights of roles, for sql/<engine>/grants.sql."""

import re
import textwrap
from collections.abc import Iterator

from rowq.contract import Routine, load_contract, sql_directory
from rowq.engines.sqlserver.calls import procedure_name
from rowq.tools.engines.oracle.packages import ROLES
from rowq.tools.migrate.sources import TABLES

_CALLED = re.compile(r"\browq\.(internal_\w+)\(")
_TABLE_TYPE = re.compile(r"^create type rowq\.(\w+) as table", re.MULTILINE)
_LONGEST_NAMES = 70
"""Width of a literal with names."""


def on_postgres() -> str:
    """Return the pairs of role and routine, and the helpers of security invoker routines."""
    pairs = [
        f"('rowq_{role}', '{called}')"
        for role, routines in _may_call("postgres")
        for routine in routines
        for called in (routine.name, *_helpers_for_callers(routine.name))
    ]
    return ",\n".join(dict.fromkeys(pairs)) + "\n"


def on_mysql() -> str:
    """Return a select of every role with the comma-separated names of its procedures."""
    selects = []
    for role, routines in _may_call("mysql"):
        names = ", ".join(routine.name for routine in routines)
        lines = [line.replace(", ", ",") for line in textwrap.wrap(names, _LONGEST_NAMES)]
        literals = ",\n".join(f"    '{line}'" for line in lines)
        selects.append(
            f"select 'rowq_{role}' as role_name, concat(\n{literals}\n) as routine_names\n"
        )
    return "union all\n".join(selects)


def on_sqlserver() -> str:
    """Return the grants of procedures and of the table types that their variables have."""
    tables = (sql_directory() / "sqlserver" / TABLES).read_text(encoding="utf-8")
    batches = []
    for role, routines in _may_call("sqlserver"):
        given = [f"rowq.{procedure_name(routine.name)}" for routine in routines]
        given += [f"type::rowq.{name}" for name in _TABLE_TYPE.findall(tables)]
        batches.append("".join(f"grant execute on {name} to rowq_{role};\n" for name in given))
    return "go\n".join(batches)


def on_oracle() -> str:
    """Return the calls that grant packages, and the type of id lists to roles that pass one."""
    return "".join(f"give('rowq_{role}', '{name}');\n" for role, name in _packages())


def kept_on_oracle() -> str:
    """Return the pairs of role and package or type that are kept."""
    pairs = [f"('ROWQ_{role.upper()}', '{name.upper()}')" for role, name in _packages()]
    return ",\n".join(pairs) + "\n"


def _may_call(engine: str) -> Iterator[tuple[str, list[Routine]]]:
    """Yield every role and its routines on an engine."""
    contract = load_contract()
    for role in contract.roles:
        routines = contract.of(engine).values()
        yield role, [routine for routine in routines if role in routine.roles]


def _helpers_for_callers(routine: str) -> list[str]:
    path = sql_directory() / "postgres" / "routines" / f"{routine}.sql"
    text = path.read_text(encoding="utf-8")
    return [] if "\nsecurity definer\n" in text else sorted(set(_CALLED.findall(text)))


def _packages() -> Iterator[tuple[str, str]]:
    for role, routines in _may_call("oracle"):
        yield role, ROLES.get(role, "rowq")
        types = {parameter.type for routine in routines for parameter in routine.parameters}
        if "int64s" in types:
            yield role, "rowq_ids"
