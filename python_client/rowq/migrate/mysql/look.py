"""Look at a MariaDB or MySQL server and change nothing."""

import re
from contextlib import closing
from typing import Any

import pymysql

from rowq.migrate.errors import ForeignSchema, MissingPrivilege
from rowq.migrate.losses import Losses
from rowq.migrate.release import Release

ROLES = ("rowq_producer", "rowq_consumer", "rowq_admin", "rowq_monitor")
BOOKKEEPING = ("migration", "migration_log")
_FIRST = ("meta", "queue", "part")

_TABLES = "select table_name from information_schema.tables where table_schema = 'rowq'"
_BOOKKEEPING = """
    select table_name
    from information_schema.columns
    where table_schema = 'rowq'
      and table_name in ('migration', 'migration_log')
      and column_name = 'migration_hash'
"""
_ROUTINES = """
    select routine_name, routine_type, definer
    from information_schema.routines
    where routine_schema = 'rowq'
"""
_OTHERS = """
    select event_name from information_schema.events where event_schema = 'rowq'
    union all
    select trigger_name from information_schema.triggers where trigger_schema = 'rowq'
"""
_ORPHANS = """
    select r.routine_name, r.definer
    from information_schema.routines r
    left join mysql.user u
        on cast(concat(u.user, '@', u.host) as binary) = cast(r.definer as binary)
    where r.routine_schema = 'rowq' and u.user is null
"""
_LOST_TABLES = {"queue", "ready", "delayed", "claim", "dead", "archive", "finished"}
_LOSSES = """
    select
        (select count(*) from rowq.queue),
        (select count(*) from (select 1 from rowq.ready where message_id > 0 limit 100000) r)
            + (
                select count(*)
                from (select 1 from rowq.delayed where message_id > 0 limit 100000) d
            )
            + (select count(*) from (select 1 from rowq.dead limit 100000) d)
            + (
                select coalesce(sum(json_length(c.messages)), 0)
                from (select messages from rowq.claim where claim_id > 0 limit 100000) c
            ),
        (select count(*) from (select 1 from rowq.archive limit 100000) a)
            + (
                select coalesce(sum(json_length(f.messages)), 0)
                from (select messages from rowq.finished where finish_id > 0 limit 100000) f
            )
"""
_ROLES = "select user from mysql.user where user in ({names})"
_BODY = re.compile(r"^create procedure rowq\.(\w+)\(.*?^end//$", re.MULTILINE | re.DOTALL)


class Look:
    """What there is to see through one connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def server(self) -> str:
        """Return the server's name and version."""
        text = str(self._rows("select version()")[0][0])
        name = "MariaDB" if "mariadb" in text.lower() else "MySQL"
        return f"{name} {text.partition('-')[0]}"

    def owner(self) -> str | None:
        """Return the account that the procedures run as, None where nothing is installed.

        Raises:
            ForeignSchema: there is a database rowq that is not ours.
            MissingPrivilege: this account may not see what is installed.
        """
        tables = self.tables()
        if not tables and self.routines():
            raise MissingPrivilege(
                f"{MissingPrivilege.number} missing_privilege: this account may call routines of"
                " rowq and not see what is installed"
            )
        if not tables:
            return None
        bookkeeping = {name for (name,) in self._rows(_BOOKKEEPING)}
        is_ours = len(bookkeeping) == len(BOOKKEEPING) or tables.issuperset(_FIRST)
        if not (is_ours or tables == bookkeeping):
            raise ForeignSchema(
                f"{ForeignSchema.number} foreign_schema: the server has a database rowq that rowq"
                " did not make"
            )
        definers = {definer for _, _, definer in self._rows(_ROUTINES)}
        return ", ".join(sorted(definers)) or "nobody"

    def account(self) -> str:
        """Return the account of this connection, as a definer is written."""
        return str(self._rows("select current_user()")[0][0])

    def orphans(self) -> dict[str, str]:
        """Return the routines whose definer is gone, and that: every call of them is error 1449.

        Empty where this account may not see who there is.
        """
        try:
            return dict(self._rows(_ORPHANS))
        except pymysql.Error:
            return {}

    def installed_ids(self) -> list[str]:
        """Return the ids of the installed migrations."""
        if "migration" not in self.tables():
            return []
        return [one for (one,) in self._rows("select migration_id from rowq.migration")]

    def roles(self) -> dict[str, bool]:
        """Return for each of rowq's roles whether the server has it; False where that is hidden."""
        names = ", ".join(f"'{role}'" for role in ROLES)
        try:
            present = {role for (role,) in self._rows(_ROLES.format(names=names))}
        except pymysql.Error:
            present = set()
        return {role: role in present for role in ROLES}

    def routines(self) -> dict[str, str]:
        """Return name and body of every routine in the database; empty for a body that is hidden.

        information_schema shows a body with its backslashes resolved, so that is not asked.
        """
        found = {}
        for name, kind, _ in self._rows(_ROUTINES):
            (shown,) = self._rows(f"show create {kind} rowq.`{name}`")
            found[name] = _code(shown[2] or "")
        return found

    def tables(self) -> set[str]:
        """Return the names of the tables and views in the database."""
        return {name for (name,) in self._rows(_TABLES)}

    def others(self) -> set[str]:
        """Return the names of events and triggers in the database, of which rowq has none."""
        return {name for (name,) in self._rows(_OTHERS)}

    def losses(self) -> Losses:
        """Return what is lost when the tables are; nothing where some of them are gone."""
        if not self.tables() >= _LOST_TABLES:
            return Losses()
        return Losses(*map(int, self._rows(_LOSSES)[0]))

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(self._connection.cursor(pymysql.cursors.Cursor)) as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())


def shipped_routines(release: Release, number: int) -> dict[str, str]:
    """Return name and body of every routine as it is after the migration of this number."""
    found: dict[str, str] = {}
    for relative, text in release.copies(number).items():
        if relative.startswith(("internal/", "routines/")):
            found.update((match.group(1), _code(match.group())) for match in _BODY.finditer(text))
    return found


def _code(text: str) -> str:
    """Return a body without its comments, which some clients do not send, and without blanks."""
    body = text[text.find("\nbegin") :].removesuffix("//")
    lines = (line.strip() for line in body.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("--"))


def missing_roles(roles: dict[str, bool]) -> tuple[str, ...]:
    """Say what to do about missing roles."""
    return tuple(
        f'role {role} is missing: a DBA can run "create role {role};", then migrate again'
        for role, present in roles.items()
        if not present
    )
