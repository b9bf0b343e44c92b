"""Read-only queries of a SQL Server database."""

import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from rowq.engines import is_driver_error
from rowq.engines.sqlserver.driver import numbers_of, signals_held
from rowq.tools.engines.sqlserver.script import batches
from rowq.tools.migrate.errors import ForeignSchema, MissingPrivilege
from rowq.tools.migrate.inspection import BaseInspection, Losses

OWNER = "rowq_owner"
BOOKKEEPING = {"migration", "migration_log"}
_FIRST = {"meta", "queue", "queue_lock"}

_SERVER = """
    select
        cast(serverproperty('EngineEdition') as int),
        cast(serverproperty('ProductVersion') as nvarchar(128)),
        cast(serverproperty('Edition') as nvarchar(128))
"""
_AZURE = {5: "Azure SQL Database", 8: "Azure SQL Managed Instance"}
_OWNER = """
    select p.name
    from sys.schemas s
    join sys.database_principals p on p.principal_id = s.principal_id
    where s.name = N'rowq'
"""
_TABLES = "select t.name from sys.tables t where t.schema_id = schema_id(N'rowq')"
_BOOKKEEPING = """
    select t.name
    from sys.tables t
    join sys.columns c on c.object_id = t.object_id
    where t.schema_id = schema_id(N'rowq')
      and t.name in (N'migration', N'migration_log')
      and c.name = N'migration_hash'
"""
_COMPUTED = """
    select c.name
    from sys.computed_columns c
    where c.object_id = object_id(N'rowq.migration')
"""
# A DBA reads as dbo, which has no rights on the server: code that the database's owner has put into
# a table runs as its reader. An account without CONTROL of the database cannot act as dbo.
AS_DBO = """
    declare @was_more bit = iif(
        has_perms_by_name(quotename(db_name()), N'DATABASE', N'CONTROL') = 1, 1, 0
    );
    if @was_more = 1
        execute as user = N'dbo';
"""
AND_BACK = """
    if @was_more = 1
        revert;
"""
# For example, the database was restored from another server, or its owner is a Windows login that
# cannot be reached.
_CANNOT_BE_DBO = {15404, 15517}
_IDS = "select m.migration_id from rowq.migration m;"
_ROUTINES = """
    select o.name, m.definition
    from sys.objects o
    left join sys.sql_modules m on m.object_id = o.object_id
    where o.schema_id = schema_id(N'rowq')
      and o.type in ('P', 'FN', 'IF', 'TF', 'V', 'TR')
"""
_LOSSES = """
    select
        (select count(*) from rowq.queue),
        (select count(*) from (select top (100000) 1 as n from rowq.ready) r)
            + (select count(*) from (select top (100000) 1 as n from rowq.delayed) d)
            + (select count(*) from (select top (100000) 1 as n from rowq.group_waiting) g)
            + (select count(*) from (select top (100000) 1 as n from rowq.blocked) b)
            + (select count(*) from (select top (100000) 1 as n from rowq.leased) l)
            + (select count(*) from (select top (100000) 1 as n from rowq.dead) d),
        (select count(*) from (select top (100000) 1 as n from rowq.archived) a)
            + (select count(*) from (select top (100000) 1 as n from rowq.finished) f);
"""
_ROLES = "select p.name from sys.database_principals p where p.type = 'R'"
# The server stores the text without "or alter", and with the blanks around it.
_CREATE = re.compile(
    r"^create\s+(?:or\s+alter\s+)?(?:procedure|function|view)\s+rowq\.(\w+)",
    re.IGNORECASE | re.MULTILINE,
)


class Inspection(BaseInspection):
    """Queries on one connection."""

    ROLES = ("rowq_producer", "rowq_consumer", "rowq_admin", "rowq_monitor")
    CREATE_ROLE = "create role {role} authorization dbo;"

    def server(self) -> str:
        """Return the server's name and version."""
        ((kind, version, edition),) = self._rows(_SERVER)
        return _AZURE.get(kind) or f"SQL Server {version} {edition}"

    def owner(self) -> str | None:
        """Return the schema's owner, as which the procedures run; None if nothing is installed.

        Raises:
            ForeignSchema: the schema rowq was not created by rowq.
            MissingPrivilege: this user cannot read what is installed.
        """
        owners, tables = self._rows(_OWNER), self.tables()
        if not tables and self.routines():
            raise MissingPrivilege(
                f"{MissingPrivilege.number} missing_privilege: this user can call rowq's routines,"
                " but cannot read what is installed",
                "A DBA can run: grant view definition on schema::rowq to the user;",
            )
        if not tables:
            return None
        bookkeeping = {name for (name,) in self._rows(_BOOKKEEPING)}
        is_ours = bookkeeping == BOOKKEEPING or tables >= _FIRST or tables == bookkeeping
        owner = str(owners[0][0]) if owners else "nobody"
        if not is_ours:
            raise _foreign("the schema rowq was not created by rowq")
        if owners and owner != OWNER:
            raise _foreign(f"schema rowq belongs to {owner}")
        return owner

    def installed_ids(self) -> list[str]:
        """Return the ids of the installed migrations.

        Raises:
            ForeignSchema: reading them would run foreign code.
            MissingPrivilege: a DBA cannot read as dbo.
        """
        if "migration" not in self.tables():
            return []
        for (name,) in self._rows(_COMPUTED):
            raise _foreign(f"rowq.migration has computed column {name}")
        return [name for (name,) in self._rows_as_dbo(_IDS)]

    def roles(self) -> dict[str, bool]:
        """Return which of rowq's roles exist in the database."""
        present = {role for (role,) in self._rows(_ROLES)}
        return {role: role in present for role in self.ROLES}

    def routines(self) -> dict[str, str]:
        """Return name and text of every routine in the schema; a hidden text is empty."""
        return {name: _code(text or "") for name, text in self._rows(_ROUTINES)}

    def shipped(self, files: Mapping[str, str]) -> dict[str, str]:
        """Return name and text of every routine in these files, in the form of `routines`."""
        return shipped_routines(files)

    def tables(self) -> set[str]:
        """Return the names of the tables in the schema."""
        return {name for (name,) in self._rows(_TABLES)}

    def losses(self) -> Losses:
        """Return what dropping the tables would delete."""
        return Losses(*self._rows_as_dbo(_LOSSES)[0])

    def _rows_as_dbo(self, query: str) -> list[tuple[Any, ...]]:
        try:
            return self._rows(AS_DBO + query + AND_BACK)
        except Exception as error:
            if is_driver_error(error) and _CANNOT_BE_DBO & numbers_of(error):
                raise MissingPrivilege(
                    f"{MissingPrivilege.number} missing_privilege: cannot act as dbo: the"
                    " database's owner is not a login of this server, or cannot be reached",
                    "A DBA can run: alter authorization on database::name to a login;",
                ) from error
            raise

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with signals_held(), closing(self._connection.cursor()) as cursor:
            rows = [tuple(row) for row in cursor.execute(query).fetchall()]
            while cursor.nextset():
                pass
            return rows


def _foreign(reason: str) -> ForeignSchema:
    return ForeignSchema(f"{ForeignSchema.number} foreign_schema: {reason}")


def shipped_routines(files: Mapping[str, str]) -> dict[str, str]:
    """Return name and text of every routine in these files."""
    found: dict[str, str] = {}
    for text in files.values():
        for batch in batches(text):
            if created := _CREATE.search(batch):
                found[created.group(1)] = _code(batch)
    return found


def _code(text: str) -> str:
    """Return the text after a routine's name, without empty lines and trailing blanks."""
    created = _CREATE.search(text)
    lines = text[created.end() :].splitlines() if created else []
    return "\n".join(line.rstrip() for line in lines if line.strip())
