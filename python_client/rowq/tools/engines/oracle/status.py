"""Read-only queries of an Oracle schema."""

import re
from collections.abc import Iterator, Mapping

from rowq.tools.engines.oracle.script import units
from rowq.tools.migrate.errors import ForeignSchema, MissingPrivilege
from rowq.tools.migrate.inspection import BaseInspection, Losses

_FIRST = {"ROWQ_META", "ROWQ_QUEUE", "ROWQ_READY"}
_BOOKKEEPING = "ROWQ_MIGRATION"

# In another account's schema, unqualified names are resolved there.
_HOME = """
    select sys_context('userenv', 'session_user'), sys_context('userenv', 'current_schema')
    from sys.dual
"""
_BEYOND = """
    select count(*), min(p.privilege)
    from user_sys_privs p
    where p.privilege like '% ANY %'
       or p.privilege in ('ALTER DATABASE', 'ALTER SYSTEM', 'ALTER USER', 'BECOME USER')
"""
_SERVER = """
    select max(p.version_full)
    from product_component_version p
    where p.product like 'Oracle%'
"""
_TABLES = r"select t.table_name from user_tables t where t.table_name like 'ROWQ\_%' escape '\'"
_SOURCES = r"""
    select s.name, s.type, s.text
    from user_source s
    where s.type in ('PACKAGE', 'PACKAGE BODY')
      and (s.name = 'ROWQ' or s.name like 'ROWQ\_%' escape '\')
      and s.name <> 'ROWQ_WAKEUP'
    order by s.name, s.type, s.line
"""
_HOLD_MESSAGES = (
    "QUEUE", "READY", "DELAYED", "LEASED", "DEAD", "GROUP_WAITING", "BLOCKED", "ARCHIVE",
    "FINISHED",
)  # fmt: skip
_LOST_TABLES = {f"ROWQ_{name}" for name in _HOLD_MESSAGES}
_LOSSES = """
    select
        (select count(*) from rowq_queue),
        (select count(*) from rowq_ready where rownum <= 100000)
            + (select count(*) from rowq_delayed where rownum <= 100000)
            + (select count(*) from rowq_leased where rownum <= 100000)
            + (select count(*) from rowq_dead where rownum <= 100000)
            + (select count(*) from rowq_group_waiting where rownum <= 100000)
            + (select count(*) from rowq_blocked where rownum <= 100000),
        (select count(*) from rowq_archive where rownum <= 100000)
            + (select count(*) from rowq_finished where rownum <= 100000)
    from dual
"""
_ROLES = "select distinct p.grantee from user_tab_privs_made p where p.grantee in ({names})"
_CREATED = re.compile(r"create or replace (package(?: body)?) (\w+)")


class Inspection(BaseInspection):
    """Queries on one connection."""

    ROLES = ("rowq_producer", "rowq_consumer", "rowq_admin", "rowq_monitor")

    def server(self) -> str:
        """Return the server's name and version."""
        return f"Oracle {self._rows(_SERVER)[0][0]}"

    def owner(self) -> str | None:
        """Return the schema's account; None if nothing is installed.

        Raises:
            ForeignSchema: rowq did not create the schema's tables ROWQ_.
            MissingPrivilege: the session is in another account's schema.
        """
        ((user, schema),) = self._rows(_HOME)
        if user != schema:
            raise MissingPrivilege(
                f"{MissingPrivilege.number} missing_privilege: {user} in the schema of {schema}"
                " cannot read what is installed",
                "Connect as the account that owns rowq, without owner= in the URL.",
            )
        tables = self.tables()
        if not tables:
            return None
        if not tables >= _FIRST and _BOOKKEEPING not in tables:
            raise ForeignSchema(
                f"{ForeignSchema.number} foreign_schema: the schema has tables ROWQ_ that rowq did"
                " not create"
            )
        return str(self._rows("select user from dual")[0][0])

    def rights_beyond(self) -> tuple[str, ...]:
        """Return a notice about privileges of the owner that routines should not have."""
        ((count, example),) = self._rows(_BEYOND)
        if not count:
            return ()
        return (
            f"the owner has {count} privileges on the whole database, such as {example}; rowq runs"
            " with them and needs none: use a separate account for rowq",
        )

    def installed_ids(self) -> list[str]:
        """Return the ids of the installed migrations."""
        if _BOOKKEEPING not in self.tables():
            return []
        return [name for (name,) in self._rows("select m.migration_id from rowq_migration m")]

    def roles(self) -> dict[str, bool]:
        """Return which of rowq's roles exist with a grant of this owner."""
        names = ", ".join(f"'{role.upper()}'" for role in self.ROLES)
        present = {role.lower() for (role,) in self._rows(_ROLES.format(names=names))}
        return {role: role in present for role in self.ROLES}

    def missing_roles(self, roles: Mapping[str, bool]) -> tuple[str, ...]:
        """Return notices about roles without a grant of this owner."""
        ((owner,),) = self._rows("select user from dual")
        return tuple(
            f"role {role} is missing, or the owner cannot grant it: a DBA can run"
            f' "create role {role}" if it is missing, and'
            f' "grant {role} to {owner} with admin option", then migrate again'
            for role, is_present in roles.items()
            if not is_present
        )

    def routines(self) -> dict[str, str]:
        """Return name and code of every package, except the optional one of wakeup.sql."""
        found: dict[str, str] = {}
        for name, kind, text in self._rows(_SOURCES):
            key = _key(kind, name)
            found[key] = found.get(key, "") + text
        return {name: _code(text) for name, text in found.items()}

    def shipped(self, files: Mapping[str, str]) -> dict[str, str]:
        """Return name and code of every package in these files, in the form of `routines`."""
        return shipped_routines(files)

    def tables(self) -> set[str]:
        """Return the names of the schema's tables ROWQ_."""
        return {name for (name,) in self._rows(_TABLES)}

    def losses(self) -> Losses:
        """Return what dropping the tables would delete; nothing if some of them are gone."""
        if not self.tables() >= _LOST_TABLES:
            return Losses()
        return Losses(*map(int, self._rows(_LOSSES)[0]))


def shipped_routines(files: Mapping[str, str]) -> dict[str, str]:
    """Return name and code of every package in these files."""
    return {
        name: code
        for path, text in files.items()
        if path.startswith("packages/")
        for name, code in _created(text)
    }


def _created(text: str) -> Iterator[tuple[str, str]]:
    for unit in units(text):
        match = _CREATED.match(unit)
        if match:
            yield _key(match[1], match[2]), _code(unit)


def _key(kind: str, name: str) -> str:
    return f"{name} {kind}".lower()


def _code(text: str) -> str:
    """Return a package's text after its first line, without comments and surrounding blanks.

    The catalog changes the first line.
    """
    lines = (line.strip() for line in text.splitlines()[1:])
    return "\n".join(line for line in lines if line and not line.startswith("--"))
