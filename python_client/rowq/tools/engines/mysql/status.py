"""Read-only queries of a MariaDB or MySQL server."""

import re
from collections.abc import Mapping
from typing import Any

import pymysql

from rowq.tools.engines.mysql.script import OWNER, statements
from rowq.tools.migrate.errors import (
    BY_NUMBER,
    ForeignSchema,
    MigrationError,
    MissingPrivilege,
    refusals,
    tables_in_use,
)
from rowq.tools.migrate.inspection import BaseInspection, Losses
from rowq.tools.migrate.release import release_for

LACKS_PRIVILEGE = {1044, 1045, 1142, 1143, 1227, 1370, 1396, 1410, 1419}
"""The server's error numbers for missing privileges."""

# preflight.sql has set variables to the account and its number of privileges outside rowq.
_HAS_MORE = """
    select @rowq_rights > 0 or exists (
        select 1
        from information_schema.schema_privileges d
        where d.grantee = @rowq_account
          and 'rowq' collate utf8mb4_bin not like d.table_schema
    )
"""
_GRANTED_EVERYWHERE = re.compile(r"GRANT (.+?) ON \*\.\* TO ")
_NAMING_ANOTHER = {"ALL PRIVILEGES", "SET USER", "SET_USER_ID", "SET_ANY_DEFINER"}

_FAULT = re.compile(r"RQ8\d\d \w+(?:: [\w ]+)?")
_BUSY = {1205, 1213}
_REMEDIES = {
    "RQ801": "rowq needs MariaDB 10.6 or MySQL 8.0.21, or newer.",
    "RQ803": "A DBA can run: grant all privileges on rowq.* to this account with grant option;",
    "RQ802": "Nothing was changed. If rowq created the database, revoke other accounts' privileges"
    " there, or migrate as its owner or as an account with privileges on rowq.* only.",
    "RQ806": "Another migration is still running after 60 seconds. Retry when it has finished.",
}
_REMEDY_FOR_OWNER = "Nothing was changed. A DBA can run: drop user 'rowq_owner'@'localhost';"

_FIRST = ("meta", "queue", "queue_lock")
_ENOUGH = 2

_TABLES = "select table_name from information_schema.tables where table_schema = 'rowq'"
_BOOKKEEPING = """
    select table_name
    from information_schema.columns
    where table_schema = 'rowq'
      and table_name in ('migration', 'migration_log', 'migration_lock')
      and column_name in ('migration_hash', 'lock_name')
"""
# rowq does not create these, and they would run with the privileges of the account that reads a
# table or calls a routine. internal_grant exists while grants.sql runs, or after a crash in it.
_FOREIGN = """
    select table_name from information_schema.tables
    where table_schema = 'rowq' and table_type <> 'BASE TABLE'
    union all
    select trigger_name from information_schema.triggers where event_object_schema = 'rowq'
    union all
    select routine_name from information_schema.routines
    where routine_schema = 'rowq' and security_type = 'INVOKER'
      and routine_name <> 'internal_grant'
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
        on cast(concat(rtrim(u.user), '@', rtrim(u.host)) as binary) = cast(r.definer as binary)
    where r.routine_schema = 'rowq' and u.user is null
"""
_LOST_TABLES = {
    "queue", "ready", "delayed", "claim", "dead", "group_waiting", "blocked", "archive", "finished",
}  # fmt: skip
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
                select count(*)
                from (select 1 from rowq.group_waiting where message_id > 0 limit 100000) g
            )
            + (select count(*) from (select 1 from rowq.blocked limit 100000) b)
            + (
                select
                    coalesce(
                        sum(coalesce(json_length(c.messages), c.last_id - c.first_id + 1)), 0
                    )
                from (
                    select messages, first_id, last_id
                    from rowq.claim
                    where claim_id > 0
                    limit 100000
                ) c
            ),
        (select count(*) from (select 1 from rowq.archive limit 100000) a)
            + (
                select coalesce(sum(json_length(f.messages)), 0)
                from (select messages from rowq.finished where finish_id > 0 limit 100000) f
            )
"""
_ROLES = "select rtrim(user) from mysql.user where user in ({names})"
_IN_LINE = re.compile(r" */\* [\w ]+ \*/ *")
_BLANKS = re.compile(r" +(?=[ ;,)])")
_FOR_SERVER = re.compile(r"/\*(M?)!(\d+)(.*?)\*/", re.DOTALL)
_ALL = 1_000_000
_BODY = re.compile(r"^create procedure rowq\.(\w+)\(.*?^end//$", re.MULTILINE | re.DOTALL)


def make_owner(connection: Any, script: str) -> tuple[bool, str | None]:
    """Create the account rowq_owner with its privileges, if it does not exist.

    Args:
        connection: a session that has run preflight.sql and bookkeeping.sql.
        script: owner.sql.

    Returns:
        Whether the routines shall run as that account, and a notice if not. It is not needed if the
        present account has privileges in `rowq` only.
    """
    if not _value(connection, _HAS_MORE):
        return False, None
    try:
        if _may_name_another(connection):
            connection.execute(script)
            return True, None
    except pymysql.Error as error:
        if error.args[0] not in LACKS_PRIVILEGE:
            raise
    return False, (
        f"the routines run as this account, with all its privileges; migrate as an account that can"
        f" create {OWNER} (create user, set user, and all on rowq.* with grant option)"
    )


def drop_owner(connection: Any) -> str | None:
    """Drop the account rowq_owner; return a notice if that is not possible."""
    try:
        connection.execute("drop user if exists 'rowq_owner'@'localhost';")
    except pymysql.Error as error:
        if error.args[0] not in LACKS_PRIVILEGE:
            raise
        return f"the account {OWNER}, if it exists, was not dropped: missing privilege"
    return None


def _may_name_another(connection: Any) -> bool:
    """Return whether the account can create routines with another definer, also by a role."""
    cursor = connection.cursor()
    cursor.execute("show grants")
    found = (_GRANTED_EVERYWHERE.match(text) for (text,) in cursor.fetchall())
    rights = {right.strip() for match in found if match for right in match[1].split(",")}
    return not rights.isdisjoint(_NAMING_ANOTHER)


def _value(connection: Any, query: str) -> Any:
    cursor = connection.cursor()
    cursor.execute(query)
    return cursor.fetchone()[0]


def refusal(error: pymysql.Error) -> MigrationError | None:
    """Turn an error into a refusal; None for any other error."""
    number, text = (*error.args, "", "")[:2]
    if fault := _FAULT.search(str(text)):
        code = fault.group()[:5]
        is_owner = ": rowq_owner " in fault.group()
        remedy = _REMEDY_FOR_OWNER if is_owner else _REMEDIES.get(code)
        return BY_NUMBER[code](fault.group(), remedy)
    if number in LACKS_PRIVILEGE:
        return MissingPrivilege(f"{MissingPrivilege.number} missing_privilege: {text}")
    if number in _BUSY:
        return tables_in_use()
    return None


class Inspection(BaseInspection):
    """Queries on one connection."""

    ROLES = ("rowq_producer", "rowq_consumer", "rowq_admin", "rowq_monitor")
    CREATE_ROLE = "create role {role};"

    def server(self) -> str:
        """Return the server's name and version."""
        text = str(self._rows("select version()")[0][0])
        name = "MariaDB" if "mariadb" in text.lower() else "MySQL"
        return f"{name} {text.partition('-')[0]}"

    def owner(self) -> str | None:
        """Return the account that the procedures run as; None if nothing is installed.

        This reads the catalog only.

        Raises:
            ForeignSchema: not everything in the database rowq was created by rowq.
            MissingPrivilege: this account cannot read what is installed.
        """
        if foreign := sorted({name for (name,) in self._rows(_FOREIGN)}):
            raise ForeignSchema(
                f"{ForeignSchema.number} foreign_schema: the database rowq has views, triggers or"
                f" invoker routines that rowq did not create: {', '.join(foreign)[:200]}"
            )
        tables = self.tables()
        if not tables and self.routines():
            raise MissingPrivilege(
                f"{MissingPrivilege.number} missing_privilege: this account can call rowq's"
                " routines, but cannot read what is installed"
            )
        if not tables:
            return None
        bookkeeping = {name for (name,) in self._rows(_BOOKKEEPING)}
        is_ours = len(bookkeeping) >= _ENOUGH or tables.issuperset(_FIRST)
        if not (is_ours or tables == bookkeeping):
            raise ForeignSchema(
                f"{ForeignSchema.number} foreign_schema: the database rowq was not created by rowq"
            )
        return ", ".join(sorted(self.definers())) or "nobody"

    def definers(self) -> set[str]:
        """Return the accounts that the routines run as."""
        return {definer for _, _, definer in self._rows(_ROUTINES)}

    def account(self) -> str:
        """Return the account of this connection, in the form of a definer."""
        return str(self._rows("select current_user()")[0][0])

    def orphans(self) -> dict[str, str]:
        """Return the routines whose definer no longer exists: every call raises error 1449.

        Empty if this account cannot list accounts.
        """
        try:
            return dict(self._rows(_ORPHANS))
        except pymysql.Error:
            return {}

    def installed_ids(self) -> list[str]:
        """Return the ids of the installed migrations."""
        if "migration" not in self.tables():
            return []
        # A handler opens tables only, so a view cannot replace the table.
        self._rows("handler rowq.migration open as rowq_migration")
        try:
            rows = self._rows(f"handler rowq_migration read first limit {_ALL}")
        finally:
            self._rows("handler rowq_migration close")
        return sorted(identity for _, identity, _ in rows)

    def roles(self) -> dict[str, bool]:
        """Return which of rowq's roles exist; False if that is hidden."""
        names = ", ".join(f"'{role}'" for role in self.ROLES)
        try:
            present = {role for (role,) in self._rows(_ROLES.format(names=names))}
        except pymysql.Error:
            present = set()
        return {role: role in present for role in self.ROLES}

    def routines(self) -> dict[str, str]:
        """Return name and body of every routine in the database; a hidden body is empty.

        information_schema cannot be used: it resolves backslashes.
        """
        found = {}
        for name, kind, _ in self._rows(_ROUTINES):
            quoted = name.replace("`", "``")
            (shown,) = self._rows(f"show create {kind} rowq.`{quoted}`")
            found[name] = _code(shown[2] or "")
        return found

    def shipped(self, files: Mapping[str, str]) -> dict[str, str]:
        """Return name and body of every routine in these files, as this server stores it."""
        return shipped_routines(files, self.server())

    def tables(self) -> set[str]:
        """Return the names of the tables and views in the database."""
        return {name for (name,) in self._rows(_TABLES)}

    def others(self) -> set[str]:
        """Return the names of events and triggers in the database; rowq has none."""
        return {name for (name,) in self._rows(_OTHERS)}

    def losses(self) -> Losses:
        """Return what dropping the tables would delete; nothing if some of them are gone.

        Raises:
            ForeignSchema: another account can replace a table by a view, and counting would run it.
            MissingPrivilege, MigrationBusy: as migrate.
        """
        with refusals(pymysql.Error, refusal):
            for statement in statements(release_for("mysql").text("preflight.sql")):
                self._rows(statement)
            return self.losses_unchecked()

    def losses_unchecked(self) -> Losses:
        """Return the same in a session that has run preflight.sql."""
        if not self.tables() >= _LOST_TABLES:
            return Losses()
        return Losses(*map(int, self._rows(_LOSSES)[0]))


def shipped_routines(files: Mapping[str, str], server: str) -> dict[str, str]:
    """Return name and body of every routine in these files.

    Args:
        files: path and text of each.
        server: its name and version, such as "MariaDB 10.11.19", which selects the versioned
            comments.
    """
    found: dict[str, str] = {}
    for path, text in files.items():
        if path.startswith(("internal/", "routines/")):
            kept = _for_server(text, server)
            found.update((match.group(1), _code(match.group())) for match in _BODY.finditer(kept))
    return found


def made_for_others(
    files: Mapping[str, str], here: Mapping[str, str], there: Mapping[str, str]
) -> set[str]:
    """Return the unmodified routines that were created by another version of the server.

    Args:
        files: path and text of each released file.
        here: name and body of the routines as this server would store them.
        there: as they are installed.
    """
    found = [each for text in files.values() for each in _FOR_SERVER.finditer(text)]
    versions = {int(each[2]) for each in found if each[1]}
    servers = [f"MariaDB {n // 10_000}.{n // 100 % 100}.{n % 100}" for n in {0, *versions}]
    others = [shipped_routines(files, server) for server in servers]
    return {
        name
        for name, text in there.items()
        if name in here and text != here[name] and any(text == other[name] for other in others)
    }


def _for_server(text: str, server: str) -> str:
    """Return a text as the server stores it, without code for other products or newer versions.

    MySQL stores a comment for MariaDB unchanged.
    """
    product, _, version = server.partition(" ")
    major, minor, patch = (int(part) for part in f"{version}.0.0".split(".")[:3])
    here = major * 10_000 + minor * 100 + patch

    def kept(found: re.Match[str]) -> str:
        is_for_mariadb, needed, words = found[1] == "M", int(found[2]), found[3]
        if is_for_mariadb != (product == "MariaDB"):
            return found[0] if is_for_mariadb else ""
        return words if needed <= here else ""

    return _FOR_SERVER.sub(kept, text)


def _code(text: str) -> str:
    """Return a body without its comments, which some clients do not send, and without blanks.

    A client that sends comments adds a blank after an inline comment.
    """
    body = _BLANKS.sub("", _IN_LINE.sub(" ", text[text.find("\nbegin") :].removesuffix("//")))
    lines = (line.strip() for line in body.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("--"))
